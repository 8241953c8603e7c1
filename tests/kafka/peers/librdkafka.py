"""librdkafka as a peer of `candor broker`.

librdkafka.py BOOTSTRAP produce TOPIC FILE    sends the lines KEY:VALUE of a file, idempotent, and fails if one is not delivered
librdkafka.py BOOTSTRAP read TOPIC OUT        writes a line per record: partition, offset, key, value
"""

import sys

import confluent_kafka as kafka


def produce(bootstrap, topic, file):
    failed = []

    def told(error, _message):
        if error is not None:
            failed.append(error)

    producer = kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2, "batch.num.messages": 50})
    with open(file, "rb") as lines:
        for line in lines:
            key, _, value = line.rstrip(b"\n").partition(b":")
            while True:
                try:
                    producer.produce(topic, value, key, on_delivery=told)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
    left = producer.flush(60)
    if failed or left:
        sys.exit(f"librdkafka: {left} without an answer, {len(failed)} failed: {failed[:3]}")


def read(bootstrap, topic, out):
    # Librdkafka wants a group's name; partitions are assigned by hand, and no group is ever asked for.
    consumer = kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, "enable.partition.eof": True})
    partitions = sorted(consumer.list_topics(topic, timeout=20).topics[topic].partitions)
    consumer.assign([kafka.TopicPartition(topic, partition, kafka.OFFSET_BEGINNING) for partition in partitions])
    at_end = set()
    with open(out, "wb") as file:
        while len(at_end) < len(partitions):
            message = consumer.poll(30)
            if message is None:
                sys.exit("librdkafka: nothing within 30 s")
            if message.error() is not None:
                if message.error().code() != kafka.KafkaError._PARTITION_EOF:
                    sys.exit(f"librdkafka: {message.error()}")
                at_end.add(message.partition())
                continue
            file.write(b"%d\t%d\t%s\t%s\n" % (message.partition(), message.offset(), message.key(), message.value()))
    consumer.close()


if __name__ == "__main__":
    bootstrap, command, *rest = sys.argv[1:]
    {"produce": produce, "read": read}[command](bootstrap, *rest)
