import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Utils;

/**
 * Kafka's own clients and tools behind one long-lived process: a command per line of standard input, its arguments
 * separated by tabs; one line "OK ..." or "ERROR ..." per command on standard output. Starting a JVM for each call
 * would cost more than the calls.
 */
public final class Foreign {
    private static final byte[] NULL = "\\N".getBytes(StandardCharsets.US_ASCII);
    private static final Tap TAP = new Tap();
    private String bootstrap = "";

    /** Standard output for tools. It stays the same object, for Scala's console (up to 3.9) keeps what it saw first. */
    private static final class Tap extends OutputStream {
        private OutputStream target = System.err;

        @Override
        public void write(int b) throws IOException {
            target.write(b);
        }

        @Override
        public void write(byte[] bytes, int from, int length) throws IOException {
            target.write(bytes, from, length);
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(TAP));
        Foreign foreign = new Foreign();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                answers.println("OK " + foreign.run(line.split("\t", -1)));
            } catch (Exception | LinkageError e) {
                e.printStackTrace();
                answers.println("ERROR " + e.toString().replace('\n', ' '));
            }
        }
    }

    private String run(String[] a) throws Exception {
        switch (a[0]) {
            case "connect":
                bootstrap = a[1];
                return bootstrap;
            case "config":
                return config(a[1], a[2], a[3]);
            case "delete":
                return delete(a[1]);
            case "lead":
                return lead(a[1], Integer.parseInt(a[2]), Integer.parseInt(a[3]));
            case "create":
                return create(a[1], Integer.parseInt(a[2]), Short.parseShort(a[3]), Arrays.asList(a).subList(4, a.length));
            case "dump":
                return dump(a[1], Path.of(a[2]), Long.parseLong(a[3]), Duration.ofSeconds(Long.parseLong(a[4])));
            case "partition":
                return partition(Integer.parseInt(a[1]), Path.of(a[2]), Path.of(a[3]));
            case "produce":
                return produce(a[1], a[2], Path.of(a[3]), Path.of(a[4]));
            case "segments":
                return segments(Path.of(a[1]), a[2]);
            default:
                throw new IllegalArgumentException("unknown command " + a[0]);
        }
    }

    private Properties properties() {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        return p;
    }

    /** Gives up early: while brokers are down, the caller has its own patience. */
    private Admin admin() {
        Properties p = properties();
        p.put("request.timeout.ms", "3000");
        p.put("default.api.timeout.ms", "6000");
        return Admin.create(p);
    }

    /** Sets one configuration of a topic, or with an empty value gives it back its default. */
    private String config(String topic, String key, String value) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        AlterConfigOp.OpType type = value.isEmpty() ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET;
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry(key, value), type);
        try (Admin admin = admin()) {
            admin.incrementalAlterConfigs(Map.of(resource, List.of(op))).all().get();
        }
        return topic;
    }

    private String delete(String topic) throws Exception {
        try (Admin admin = admin()) {
            admin.deleteTopics(List.of(topic)).all().get();
        }
        return topic;
    }

    /** A node leads a partition from now on: it becomes the preferred one, and then it is elected. */
    private String lead(String topic, int partition, int node) throws Exception {
        TopicPartition place = new TopicPartition(topic, partition);
        try (Admin admin = admin()) {
            List<Integer> replicas = new ArrayList<>(List.of(node));
            admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().get(partition)
                    .replicas().stream().map(Node::id).filter(id -> id != node).forEach(replicas::add);
            admin.alterPartitionReassignments(Map.of(place, Optional.of(new NewPartitionReassignment(replicas))))
                    .all().get();
            admin.electLeaders(ElectionType.PREFERRED, Set.of(place)).all().get();
        }
        return place.toString();
    }

    private String create(String topic, int partitions, short replicas, List<String> configs) throws Exception {
        Map<String, String> config = new HashMap<>();
        for (String c : configs) {
            int at = c.indexOf('=');
            config.put(c.substring(0, at), c.substring(at + 1));
        }
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, replicas).configs(config))).all().get();
        }
        return topic;
    }

    /**
     * Writes the whole topic, partition by partition, once it holds at least `least` records. One line per record:
     * partition, offset, key, value.
     */
    private String dump(String topic, Path out, long least, Duration patience) throws Exception {
        Properties p = properties();
        p.put("enable.auto.commit", "false");
        p.put("allow.auto.create.topics", "false");
        p.put("isolation.level", "read_uncommitted");
        p.put("fetch.max.wait.ms", "20");
        p.put("max.poll.records", "20000");
        p.put("max.partition.fetch.bytes", "8388608");
        long records = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                        new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                OutputStream file = new BufferedOutputStream(Files.newOutputStream(out), 1 << 20)) {
            List<TopicPartition> all = new ArrayList<>();
            consumer.partitionsFor(topic).forEach(i -> all.add(new TopicPartition(topic, i.partition())));
            if (all.isEmpty()) {
                throw new IllegalStateException("there is no topic " + topic);
            }
            all.sort((x, y) -> Integer.compare(x.partition(), y.partition()));
            Map<TopicPartition, Long> ends = endsOf(consumer, all, least, patience);
            for (TopicPartition one : all) {
                records += dumpPartition(consumer, one, ends.get(one), patience, file);
            }
        }
        return Long.toString(records);
    }

    private static Map<TopicPartition, Long> endsOf(
            KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> all, long least, Duration patience) {
        long until = System.nanoTime() + patience.toNanos();
        while (true) {
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long sum = ends.values().stream().mapToLong(Long::longValue).sum();
            if (sum >= least) {
                return ends;
            }
            if (System.nanoTime() > until) {
                throw new IllegalStateException("the topic ends at " + sum + " records, expected " + least);
            }
        }
    }

    private static long dumpPartition(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition one, long end, Duration patience, OutputStream file)
            throws Exception {
        consumer.assign(List.of(one));
        consumer.seekToBeginning(List.of(one));
        long records = 0;
        long until = System.nanoTime() + patience.toNanos();
        while (consumer.position(one) < end) {
            for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
                file.write((r.partition() + "\t" + r.offset() + "\t").getBytes(StandardCharsets.US_ASCII));
                escape(r.key(), file);
                file.write('\t');
                escape(r.value(), file);
                file.write('\n');
                records++;
                until = System.nanoTime() + patience.toNanos();
            }
            if (System.nanoTime() > until) {
                throw new IllegalStateException(one + " stops at " + consumer.position(one) + " of " + end);
            }
        }
        return records;
    }

    private static void escape(byte[] bytes, OutputStream out) throws Exception {
        if (bytes == null) {
            out.write(NULL);
            return;
        }
        int from = 0;
        for (int i = 0; i < bytes.length; i++) {
            int code = "\\\t\n".indexOf(bytes[i]);
            if (code >= 0) {
                out.write(bytes, from, i - from);
                out.write('\\');
                out.write("\\tn".charAt(code));
                from = i + 1;
            }
        }
        out.write(bytes, from, bytes.length - from);
    }

    /** The partition Kafka's own producer gives to each key, a key per line. */
    private static String partition(int partitions, Path keys, Path out) throws Exception {
        List<String> answer = new ArrayList<>();
        for (String key : Files.readAllLines(keys)) {
            int hash = Utils.murmur2(key.getBytes(StandardCharsets.UTF_8));
            answer.add(Integer.toString(Utils.toPositive(hash) % partitions));
        }
        Files.write(out, answer);
        return Integer.toString(answer.size());
    }

    /** What `candor produce` does, by Kafka's own producer: the harness is tried on it, with the same ledger. */
    private String produce(String topic, String separator, Path file, Path ledger) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                        new KafkaProducer<>(properties(), new ByteArraySerializer(), new ByteArraySerializer());
                BufferedReader in = Files.newBufferedReader(file)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                int at = separator.isEmpty() ? -1 : line.indexOf(separator);
                byte[] key = at < 0 ? null : line.substring(0, at).getBytes(StandardCharsets.UTF_8);
                byte[] value = line.substring(at < 0 ? 0 : at + separator.length()).getBytes(StandardCharsets.UTF_8);
                sent.add(producer.send(new ProducerRecord<>(topic, key, value)));
            }
        }
        List<String> lines = new ArrayList<>();
        for (Future<RecordMetadata> one : sent) {
            RecordMetadata at = one.get();
            lines.add("{\"line\":" + (lines.size() + 1) + ",\"partition\":" + at.partition()
                    + ",\"verdict\":\"delivered\",\"offset\":" + at.offset()
                    + ",\"reason\":null,\"resolution\":null,\"at_ms\":0}");
        }
        Files.write(ledger, lines);
        return Integer.toString(lines.size());
    }

    /** What Kafka's DumpLogSegments prints of segment files (separated by commas), into a file. */
    private static String segments(Path out, String files) throws Exception {
        try (OutputStream file = new BufferedOutputStream(Files.newOutputStream(out), 1 << 20)) {
            TAP.target = file;
            String[] args = {"--files", files};
            dumpLogSegments().getMethod("main", String[].class).invoke(null, (Object) args);
            System.out.flush();
        } finally {
            TAP.target = System.err;
        }
        return out.toString();
    }

    private static Class<?> dumpLogSegments() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.tools.DumpLogSegments");
        } catch (ClassNotFoundException e) {
            return Class.forName("kafka.tools.DumpLogSegments");
        }
    }
}
