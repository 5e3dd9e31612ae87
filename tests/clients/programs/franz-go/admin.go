package main

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func admin(topic, group string) {
	producer := client()
	defer producer.Close()
	client := kadm.NewClient(producer)
	// Not ListTopics, which answers from what the client remembers.
	listed := func() bool {
		for _, found := range of(kmsg.NewPtrMetadataRequest().RequestWith(ctx, producer)).Topics {
			if *found.Topic == topic {
				return true
			}
		}
		return false
	}
	partitions := func() int { return len(of(client.ListTopics(ctx, topic))[topic].Partitions) }
	grouped := func() bool { _, found := of(client.ListGroups(ctx))[group]; return found }
	config := func(name string) string {
		found := of(of(client.DescribeTopicConfigs(ctx, topic)).On(topic, nil))
		must(found.Err)
		for _, config := range found.Configs {
			if config.Key == name {
				return config.MaybeValue()
			}
		}
		return "missing"
	}
	forever := map[string]*string{"retention.ms": kadm.StringPtr("-1")}
	must(of(client.CreateTopic(ctx, 2, 1, forever, topic)).Err)
	say(fact{"created": listed(), "partitions": partitions()})
	_, err := client.CreateTopic(ctx, 2, 1, forever, topic)
	say(fact{"created_again": err.Error()})
	must(of(client.UpdatePartitions(ctx, 4, topic)).Error())
	say(fact{"partitions_grown": partitions()})
	say(fact{"retention": config("retention.ms"), "cleanup": config("cleanup.policy")})
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("12345000")}
	must(of(of(client.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, topic)).On(topic, nil)).Err)
	say(fact{"retention_altered": config("retention.ms")})
	for number := range 5 {
		must(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(number))}).FirstErr())
	}
	until := kadm.Offsets{}
	until.Add(kadm.Offset{Topic: topic, Partition: 0, At: 3})
	deleted, _ := of(client.DeleteRecords(ctx, until)).Lookup(topic, 0)
	must(deleted.Err)
	say(fact{"low_watermark": deleted.LowWatermark})
	described := of(client.DescribeGroups(ctx, group))[group]
	must(described.Err)
	say(fact{"group_listed": grouped(), "group_state": described.State})
	of(client.FetchOffsets(ctx, group)).Each(func(found kadm.OffsetResponse) { say(fact{"group_offset": found.At}) })
	must(of(client.DeleteGroup(ctx, group)).Err)
	say(fact{"group_deleted": !grouped()})
	must(of(client.DeleteTopic(ctx, topic)).Err)
	say(fact{"deleted": !listed()})
}
