"""kafka-python."""

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from lines import encoded, headers_of, records, run, say, say_record, told_to_leave


def write(bootstrap, prefix, *codecs):
    to_write = records()
    for codec in codecs:
        codec_name = None if codec == "none" else codec
        producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec_name, linger_ms=100)
        waiting = [
            producer.send(
                f"{prefix}-{codec}",
                partition=record["partition"],
                timestamp_ms=record["timestamp"],
                key=encoded(record["key"]),
                value=encoded(record["value"]),
                headers=headers_of(record),
            )
            for record in to_write
        ]
        for future in waiting:
            at = future.get(30)
            say(topic=at.topic, partition=at.partition, offset=at.offset)
        producer.close()


def read(bootstrap, isolation, *topics):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    for topic in topics:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < ends[partition] for partition in partitions):
            for found in consumer.poll(1000).values():
                for record in found:
                    say_record(
                        topic, record.partition, record.offset, record.timestamp, record.key, record.value, record.headers
                    )
    consumer.close()


class Assigned(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        say(assigned=sorted(partition.partition for partition in assigned))


def member(bootstrap, group, topic):
    leave = told_to_leave()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=300,
    )
    consumer.subscribe([topic], listener=Assigned())
    while not leave.is_set():
        found = consumer.poll(200)
        for records_of_one in found.values():
            for record in records_of_one:
                say(partition=record.partition, offset=record.offset, value=record.value.decode())
        if found:
            consumer.commit()
    consumer.close(autocommit=False)
    say(left=True)


def transactions(bootstrap, topic, group):
    def transactional():
        producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
        producer.init_transactions()
        return producer

    def begin(producer, name):
        producer.begin_transaction()
        for number in range(5):
            producer.send(topic, partition=0, value=f"{name}-{number}".encode())
        producer.flush()

    first = transactional()
    begin(first, "committed")
    first.commit_transaction()
    begin(first, "aborted")
    first.abort_transaction()
    begin(first, "with-offsets")
    first.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(7, "", -1)}, group)
    first.commit_transaction()
    begin(first, "fenced")
    second = transactional()
    try:
        first.commit_transaction()
    except KafkaError as error:
        say(fenced=type(error).__name__)
    begin(second, "last")
    second.commit_transaction()


def admin(bootstrap, topic, group):
    client = KafkaAdminClient(bootstrap_servers=bootstrap)

    def partitions():
        return len(client.describe_topics([topic])[0]["partitions"])

    def config(name):
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        return client.describe_configs([resource], config_filter="all")["topic"][topic][name]["value"]

    def groups():
        return [found["group_id"] for found in client.list_groups()]

    new = {topic: {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "-1"}}}
    client.create_topics(new)
    say(created=topic in client.list_topics(), partitions=partitions())
    try:
        client.create_topics(new)
    except KafkaError as error:
        say(created_again=type(error).__name__)
    client.create_partitions({topic: 4})
    say(partitions_grown=partitions())
    say(retention=config("retention.ms"), cleanup=config("cleanup.policy"))
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "12345000"})])
    say(retention_altered=config("retention.ms"))
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(5):
        producer.send(topic, partition=0, value=str(number).encode())
    producer.flush()
    first = TopicPartition(topic, 0)
    say(low_watermark=client.delete_records({first: 3})[first]["low_watermark"])
    say(group_listed=group in groups(), group_state=str(client.describe_groups([group])[group]["group_state"]))
    say(group_offset=next(iter(client.list_group_offsets(group)[group].values())).offset)
    client.delete_groups([group])
    say(group_deleted=group not in groups())
    client.delete_topics([topic])
    say(deleted=topic not in client.list_topics())


if __name__ == "__main__":
    run({"write": write, "read": read, "member": member, "transactions": transactions, "admin": admin})
