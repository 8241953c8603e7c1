// franz-go as a peer of `candor broker`.
//
//	franz BOOTSTRAP produce TOPIC FILE    sends the lines KEY:VALUE of a file, idempotent, and fails if one is not delivered
//	franz BOOTSTRAP read TOPIC OUT        writes a line per record: partition, offset, key, value
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const patience = time.Minute

func main() {
	if len(os.Args) != 5 {
		fail(fmt.Errorf("usage: franz BOOTSTRAP produce|read TOPIC FILE"))
	}
	bootstrap, command, topic, file := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	switch command {
	case "produce":
		err = produce(ctx, bootstrap, topic, file)
	case "read":
		err = read(ctx, bootstrap, topic, file)
	default:
		err = fmt.Errorf("no command %s", command)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "franz-go:", err)
	os.Exit(1)
}

func seeds(bootstrap string) kgo.Opt {
	return kgo.SeedBrokers(strings.Split(bootstrap, ",")...)
}

func produce(ctx context.Context, bootstrap, topic, file string) error {
	client, err := kgo.NewClient(seeds(bootstrap), kgo.AllowAutoTopicCreation(), kgo.ProducerLinger(time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	// Promises are called one after the other.
	var failed error
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		key, value, _ := bytes.Cut(bytes.Clone(lines.Bytes()), []byte(":"))
		client.Produce(ctx, &kgo.Record{Topic: topic, Key: key, Value: value}, func(_ *kgo.Record, err error) {
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return failed
}

// ends asks each partition's leader where it ends.
func ends(ctx context.Context, client *kgo.Client, topic string) (map[int32]int64, error) {
	name := topic
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	described, err := metadata.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	list := kmsg.NewPtrListOffsetsRequest()
	of := kmsg.NewListOffsetsRequestTopic()
	of.Topic = topic
	for _, partition := range described.Topics[0].Partitions {
		latest := kmsg.NewListOffsetsRequestTopicPartition()
		latest.Partition, latest.Timestamp = partition.Partition, -1
		of.Partitions = append(of.Partitions, latest)
	}
	list.Topics = append(list.Topics, of)
	found := map[int32]int64{}
	// The client divides the request among the leaders.
	for _, shard := range client.RequestSharded(ctx, list) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		for _, partition := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions {
			if partition.ErrorCode != 0 {
				return nil, fmt.Errorf("partition %d: code %d", partition.Partition, partition.ErrorCode)
			}
			found[partition.Partition] = partition.Offset
		}
	}
	return found, nil
}

func read(ctx context.Context, bootstrap, topic, file string) error {
	start := kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
	client, err := kgo.NewClient(seeds(bootstrap), kgo.ConsumeTopics(topic), start)
	if err != nil {
		return err
	}
	defer client.Close()
	until, err := ends(ctx, client, topic)
	if err != nil {
		return err
	}
	left := int64(0)
	for _, end := range until {
		left += end
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			fmt.Fprintf(buffered, "%d\t%d\t%s\t%s\n", r.Partition, r.Offset, r.Key, r.Value)
			left--
		})
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return out.Close()
}
