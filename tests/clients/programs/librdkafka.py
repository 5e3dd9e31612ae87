"""librdkafka, through confluent-kafka."""

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    OFFSET_BEGINNING,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from lines import encoded, headers_of, records, run, say, say_record, told_to_leave


def sent(failure, message):
    if failure is not None:
        raise KafkaException(failure)
    say(topic=message.topic(), partition=message.partition(), offset=message.offset())


def write(bootstrap, prefix, *codecs):
    to_write = records()
    for codec in codecs:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 100})
        for record in to_write:
            producer.produce(
                f"{prefix}-{codec}",
                partition=record["partition"],
                timestamp=record["timestamp"],
                key=encoded(record["key"]),
                value=encoded(record["value"]),
                headers=headers_of(record),
                on_delivery=sent,
            )
        producer.flush()


def read(bootstrap, isolation, *topics):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    found = consumer.list_topics().topics
    partitions = {
        TopicPartition(topic, number, OFFSET_BEGINNING) for topic in topics for number in found[topic].partitions
    }
    consumer.assign(list(partitions))
    while partitions:
        message = consumer.poll(30)
        if message is None:
            raise TimeoutError(f"nothing came from {partitions}")
        if message.error() is None:
            say_record(
                message.topic(),
                message.partition(),
                message.offset(),
                message.timestamp()[1],
                message.key(),
                message.value(),
                message.headers(),
            )
        elif message.error().code() == KafkaError._PARTITION_EOF:
            partitions.discard(TopicPartition(message.topic(), message.partition()))
        else:
            raise KafkaException(message.error())
    consumer.close()


def member(bootstrap, group, topic):
    leave = told_to_leave()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 300,
        }
    )
    consumer.subscribe(
        [topic], on_assign=lambda _, given: say(assigned=sorted(partition.partition for partition in given))
    )
    while not leave.is_set():
        messages = consumer.consume(100, 0.2)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            say(partition=message.partition(), offset=message.offset(), value=message.value().decode())
        if messages:
            consumer.commit(asynchronous=False)
    consumer.close()
    say(left=True)


def transactions(bootstrap, topic, group):
    def transactional():
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-id"})
        producer.init_transactions()
        return producer

    def begin(producer, name):
        producer.begin_transaction()
        for number in range(5):
            producer.produce(topic, partition=0, value=f"{name}-{number}")
        producer.flush()

    first = transactional()
    begin(first, "committed")
    first.commit_transaction()
    begin(first, "aborted")
    first.abort_transaction()
    begin(first, "with-offsets")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    first.send_offsets_to_transaction([TopicPartition(topic, 0, 7)], consumer.consumer_group_metadata())
    first.commit_transaction()
    begin(first, "fenced")
    second = transactional()
    try:
        first.commit_transaction()
    except KafkaException as error:
        say(fenced=error.args[0].name())
    begin(second, "last")
    second.commit_transaction()


def admin(bootstrap, topic, group):
    client = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def of_one(futures):
        (future,) = futures.values()
        return future.result()

    def listed():
        return topic in client.list_topics().topics

    def described():
        return client.list_topics(topic).topics[topic].partitions

    def configs():
        return of_one(client.describe_configs([resource]))

    def groups():
        return [found.group_id for found in client.list_consumer_groups().result().valid]

    new = NewTopic(topic, 2, config={"retention.ms": "-1"})
    of_one(client.create_topics([new]))
    say(created=listed(), partitions=len(described()))
    try:
        of_one(client.create_topics([new]))
    except KafkaException as error:
        say(created_again=error.args[0].name())
    of_one(client.create_partitions([NewPartitions(topic, 4)]))
    say(partitions_grown=len(described()))
    say(retention=configs()["retention.ms"].value, cleanup=configs()["cleanup.policy"].value)
    changed = ConfigEntry("retention.ms", "12345000", incremental_operation=AlterConfigOpType.SET)
    of_one(client.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[changed])]))
    say(retention_altered=configs()["retention.ms"].value)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(5):
        producer.produce(topic, partition=0, value=str(number))
    producer.flush()
    say(low_watermark=of_one(client.delete_records([TopicPartition(topic, 0, 3)])).low_watermark)
    say(group_listed=group in groups(), group_state=of_one(client.describe_consumer_groups([group])).state.name)
    offsets = of_one(client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
    say(group_offset=offsets.topic_partitions[0].offset)
    of_one(client.delete_consumer_groups([group]))
    say(group_deleted=group not in groups())
    of_one(client.delete_topics([topic]))
    say(deleted=not listed())


run({"write": write, "read": read, "member": member, "transactions": transactions, "admin": admin})
