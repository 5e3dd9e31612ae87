// franz-go, as a program that prints what happened as JSON lines.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type fact map[string]any

var (
	seeds   = kgo.SeedBrokers(os.Args[1])
	ctx     = context.Background()
	saying  sync.Mutex
	output  = json.NewEncoder(os.Stdout)
	exactly = kgo.RecordPartitioner(kgo.ManualPartitioner())
	codecs  = map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
)

// A record to write, and with an offset and a topic one that was read.
type record struct {
	Topic     string       `json:"topic,omitempty"`
	Partition int32        `json:"partition"`
	Offset    int64        `json:"offset"`
	Timestamp int64        `json:"timestamp"`
	Key       *string      `json:"key"`
	Value     *string      `json:"value"`
	Headers   [][2]*string `json:"headers"`
}

func main() {
	words := os.Args[3:]
	switch os.Args[2] {
	case "write":
		write(words[0], words[1:])
	case "read":
		read(words[0], words[1:])
	case "member":
		member(words[0], words[1])
	case "transactions":
		transactions(words[0], words[1])
	case "admin":
		admin(words[0], words[1])
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func of[T any](value T, err error) T {
	must(err)
	return value
}

func say(what any) {
	saying.Lock()
	defer saying.Unlock()
	must(output.Encode(what))
}

func client(options ...kgo.Opt) *kgo.Client {
	return of(kgo.NewClient(append(options, seeds, exactly)...))
}

func data(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

func text(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

func write(prefix string, names []string) {
	var all []record
	for input := bufio.NewReader(os.Stdin); ; {
		line, err := input.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		var one record
		must(json.Unmarshal(line, &one))
		all = append(all, one)
	}
	for _, name := range names {
		producer := client(kgo.ProducerBatchCompression(codecs[name]), kgo.ProducerLinger(100*time.Millisecond))
		for _, one := range all {
			out := &kgo.Record{Topic: prefix + "-" + name, Partition: one.Partition, Timestamp: time.UnixMilli(one.Timestamp),
				Key: data(one.Key), Value: data(one.Value)}
			for _, header := range one.Headers {
				out.Headers = append(out.Headers, kgo.RecordHeader{Key: *header[0], Value: data(header[1])})
			}
			producer.Produce(ctx, out, func(sent *kgo.Record, err error) {
				must(err)
				say(fact{"topic": sent.Topic, "partition": sent.Partition, "offset": sent.Offset})
			})
		}
		must(producer.Flush(ctx))
		producer.Close()
	}
}

func read(isolation string, topics []string) {
	level := kgo.ReadUncommitted()
	if isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	// The markers of transactions are read as well, for a partition may end in one, but not reported.
	consumer := client(kgo.ConsumeTopics(topics...), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords())
	ends := of(kadm.NewClient(consumer).ListEndOffsets(ctx, topics...))
	left := 0
	ends.Each(func(end kadm.ListedOffset) {
		if end.Offset > 0 {
			left++
		}
	})
	for left > 0 {
		fetches := consumer.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) { must(err) })
		fetches.EachRecord(func(found *kgo.Record) {
			if end, _ := ends.Lookup(found.Topic, found.Partition); found.Offset == end.Offset-1 {
				left--
			}
			if found.Attrs.IsControl() {
				return
			}
			headers := [][2]*string{}
			for _, header := range found.Headers {
				headers = append(headers, [2]*string{&header.Key, text(header.Value)})
			}
			say(record{found.Topic, found.Partition, found.Offset, found.Timestamp.UnixMilli(), text(found.Key), text(found.Value), headers})
		})
	}
	consumer.Close()
}

func member(group, topic string) {
	stop, leave := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		leave()
	}()
	owned := map[int32]bool{}
	change := func(owns bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, moved map[string][]int32) {
			for _, partition := range moved[topic] {
				owned[partition] = owns
			}
			assigned := []int{}
			for partition, owns := range owned {
				if owns {
					assigned = append(assigned, int(partition))
				}
			}
			sort.Ints(assigned)
			say(fact{"assigned": assigned})
		}
	}
	consumer := client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)))
	for stop.Err() == nil {
		fetches := consumer.PollFetches(stop)
		fetches.EachRecord(func(found *kgo.Record) {
			say(fact{"partition": found.Partition, "offset": found.Offset, "value": string(found.Value)})
		})
		must(consumer.CommitUncommittedOffsets(ctx))
	}
	consumer.Close()
	say(fact{"left": true})
}

func transactions(topic, group string) {
	begin := func(producer *kgo.Client, name string) {
		must(producer.BeginTransaction())
		for number := range 5 {
			producer.Produce(ctx, &kgo.Record{Topic: topic, Value: []byte(name + "-" + strconv.Itoa(number))}, func(_ *kgo.Record, err error) { must(err) })
		}
		must(producer.Flush(ctx))
	}
	id := kgo.TransactionalID(topic + "-id")
	first := client(id)
	begin(first, "committed")
	must(first.EndTransaction(ctx, kgo.TryCommit))
	begin(first, "aborted")
	must(first.EndTransaction(ctx, kgo.TryAbort))
	begin(first, "with-offsets")
	commitOffset(first, topic, group)
	must(first.EndTransaction(ctx, kgo.TryCommit))
	begin(first, "fenced")
	second := client(id)
	// Its id is asked for with the first transaction; that ends the one that the first client left open.
	_, _, err := second.ProducerID(ctx)
	must(err)
	if known := new(kerr.Error); errors.As(first.EndTransaction(ctx, kgo.TryCommit), &known) {
		say(fact{"fenced": known.Message})
	}
	begin(second, "last")
	must(second.EndTransaction(ctx, kgo.TryCommit))
	second.Close()
}

// Without a consumer of its own there is no call for this, but any request can be sent.
func commitOffset(producer *kgo.Client, topic, group string) {
	id, epoch, err := producer.ProducerID(ctx)
	must(err)
	request := kmsg.NewPtrTxnOffsetCommitRequest()
	request.TransactionalID, request.Group, request.ProducerID, request.ProducerEpoch = topic+"-id", group, id, epoch
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = 7
	ofTopic := kmsg.NewTxnOffsetCommitRequestTopic()
	ofTopic.Topic, ofTopic.Partitions = topic, append(ofTopic.Partitions, partition)
	ofTopic.TopicID = of(kadm.NewClient(producer).ListTopics(ctx, topic))[topic].ID
	request.Topics = append(request.Topics, ofTopic)
	answer := of(request.RequestWith(ctx, producer))
	must(kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode))
}
