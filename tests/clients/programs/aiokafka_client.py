"""aiokafka. It has no way to delete a group, and no error names in the answers of its admin client."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from lines import encoded, headers_of, records, run, say, say_record, told_to_leave


async def write(bootstrap, prefix, *codecs):
    to_write = records()
    for codec in codecs:
        codec_name = None if codec == "none" else codec
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type=codec_name, linger_ms=100)
        await producer.start()
        waiting = [
            await producer.send(
                f"{prefix}-{codec}",
                partition=record["partition"],
                timestamp_ms=record["timestamp"],
                key=encoded(record["key"]),
                value=encoded(record["value"]),
                headers=headers_of(record),
            )
            for record in to_write
        ]
        for at in await asyncio.gather(*waiting):
            say(topic=at.topic, partition=at.partition, offset=at.offset)
        await producer.stop()


async def read(bootstrap, isolation, *topics):
    consumer = AIOKafkaConsumer(
        *topics, bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest"
    )
    await consumer.start()
    partitions = [TopicPartition(topic, number) for topic in topics for number in consumer.partitions_for_topic(topic)]
    ends = await consumer.end_offsets(partitions)
    while any([await consumer.position(partition) < ends[partition] for partition in partitions]):
        for found in (await consumer.getmany(timeout_ms=500)).values():
            for record in found:
                say_record(
                    record.topic,
                    record.partition,
                    record.offset,
                    record.timestamp,
                    record.key,
                    record.value,
                    record.headers,
                )
    await consumer.stop()


class Assigned(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        say(assigned=sorted(partition.partition for partition in assigned))


async def member(bootstrap, group, topic):
    leave = told_to_leave()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=300,
    )
    await consumer.start()
    consumer.subscribe([topic], listener=Assigned())
    while not leave.is_set():
        found = await consumer.getmany(timeout_ms=200)
        for records_of_one in found.values():
            for record in records_of_one:
                say(partition=record.partition, offset=record.offset, value=record.value.decode())
        if found:
            await consumer.commit()
    await consumer.stop()
    say(left=True)


async def transactions(bootstrap, topic, group):
    async def transactional():
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
        await producer.start()
        return producer

    async def begin(producer, name):
        await producer.begin_transaction()
        for number in range(5):
            await producer.send(topic, partition=0, value=f"{name}-{number}".encode())
        await producer.flush()

    first = await transactional()
    await begin(first, "committed")
    await first.commit_transaction()
    await begin(first, "aborted")
    await first.abort_transaction()
    await begin(first, "with-offsets")
    await first.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, group)
    await first.commit_transaction()
    await begin(first, "fenced")
    second = await transactional()
    try:
        await first.commit_transaction()
    except KafkaError as error:
        say(fenced=type(error).__name__)
    await begin(second, "last")
    await second.commit_transaction()
    await first.stop()
    await second.stop()


async def admin(bootstrap, topic, group):
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()

    async def partitions():
        return len((await client.describe_topics([topic]))[0]["partitions"])

    async def config(name):
        (answer,) = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        return {entry[0]: entry[1] for entry in answer.resources[0][4]}[name]

    new = NewTopic(topic, 2, 1, topic_configs={"retention.ms": "-1"})
    await client.create_topics([new])
    say(created=topic in await client.list_topics(), partitions=await partitions())
    again = await client.create_topics([new])
    say(created_again=for_code(again.topic_errors[0][1]).__name__)
    await client.create_partitions({topic: NewPartitions(4)})
    say(partitions_grown=await partitions())
    say(retention=await config("retention.ms"), cleanup=await config("cleanup.policy"))
    changed = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "12345000"})
    await client.alter_configs([changed])
    say(retention_altered=await config("retention.ms"))
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for number in range(5):
        await producer.send_and_wait(topic, partition=0, value=str(number).encode())
    await producer.stop()
    first = TopicPartition(topic, 0)
    say(low_watermark=(await client.delete_records({first: RecordsToDelete(3)}))[first])
    (answer,) = await client.describe_consumer_groups([group])
    groups = [found[0] for found in await client.list_consumer_groups()]
    say(group_listed=group in groups, group_state=answer.groups[0][2])
    (offset,) = (await client.list_consumer_group_offsets(group)).values()
    say(group_offset=offset.offset)
    await client.delete_topics([topic])
    say(deleted=topic not in await client.list_topics())
    await client.close()


def plainly(command):
    return lambda *arguments: asyncio.run(command(*arguments))


commands = {"write": write, "read": read, "member": member, "transactions": transactions, "admin": admin}
run({name: plainly(command) for name, command in commands.items()})
