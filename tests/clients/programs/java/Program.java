import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

/** The clients of Apache Kafka, as a program that prints what happened as JSON lines. */
public class Program {
    static final ObjectMapper JSON = new ObjectMapper();
    // Not System.out, which writes in the charset of the locale.
    static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    static String bootstrap;

    public static void main(String[] words) throws Exception {
        bootstrap = words[0];
        List<String> rest = List.of(words).subList(2, words.length);
        switch (words[1]) {
            case "write" -> write(rest.get(0), rest.subList(1, rest.size()));
            case "read" -> read(rest.get(0), rest.subList(1, rest.size()));
            case "member" -> member(rest.get(0), rest.get(1));
            case "transactions" -> transactions(rest.get(0), rest.get(1));
            case "admin" -> admin(rest.get(0), rest.get(1));
            default -> throw new IllegalArgumentException(words[1]);
        }
    }

    static synchronized void say(Object... pairs) throws Exception {
        Map<String, Object> fact = new LinkedHashMap<>();
        for (int at = 0; at < pairs.length; at += 2) fact.put((String) pairs[at], pairs[at + 1]);
        OUT.println(JSON.writeValueAsString(fact));
    }

    static Properties properties(String... pairs) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        for (int at = 0; at < pairs.length; at += 2) properties.put(pairs[at], pairs[at + 1]);
        return properties;
    }

    static KafkaProducer<String, String> producer(String... pairs) {
        return new KafkaProducer<>(properties(pairs), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String... pairs) {
        return new KafkaConsumer<>(properties(pairs), new StringDeserializer(), new StringDeserializer());
    }

    static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }

    static void write(String prefix, List<String> codecs) throws Exception {
        List<JsonNode> records = new ArrayList<>();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) records.add(JSON.readTree(line));
        for (String codec : codecs) {
            try (var producer = producer("compression.type", codec, "linger.ms", "100")) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (JsonNode record : records) {
                    var out = new ProducerRecord<>(prefix + "-" + codec, record.get("partition").asInt(),
                        record.get("timestamp").asLong(), text(record.get("key")), text(record.get("value")));
                    for (JsonNode header : record.get("headers")) {
                        String value = text(header.get(1));
                        out.headers().add(header.get(0).asText(), value == null ? null : value.getBytes(StandardCharsets.UTF_8));
                    }
                    sent.add(producer.send(out));
                }
                for (var future : sent) {
                    var at = future.get();
                    say("topic", at.topic(), "partition", at.partition(), "offset", at.offset());
                }
            }
        }
    }

    static void read(String isolation, List<String> topics) throws Exception {
        try (var consumer = consumer("isolation.level", isolation, "enable.auto.commit", "false")) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : topics)
                for (var found : consumer.partitionsFor(topic)) partitions.add(new TopicPartition(topic, found.partition()));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            var ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(at -> consumer.position(at) < ends.get(at))) {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    List<Object> headers = new ArrayList<>();
                    for (Header header : record.headers()) {
                        String value = header.value() == null ? null : new String(header.value(), StandardCharsets.UTF_8);
                        headers.add(Arrays.asList(header.key(), value));
                    }
                    say("topic", record.topic(), "partition", record.partition(), "offset", record.offset(), "timestamp",
                        record.timestamp(), "key", record.key(), "value", record.value(), "headers", headers);
                }
            }
        }
    }

    static void member(String group, String topic) throws Exception {
        Thread leave = new Thread(() -> {
            try { System.in.readAllBytes(); } catch (java.io.IOException ignored) { }
        });
        leave.setDaemon(true);
        leave.start();
        try (var consumer = consumer("group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false",
                "heartbeat.interval.ms", "300", "partition.assignment.strategy", CooperativeStickyAssignor.class.getName())) {
            consumer.subscribe(List.of(topic));
            List<Integer> before = List.of();
            while (leave.isAlive()) {
                var records = consumer.poll(Duration.ofMillis(200));
                List<Integer> assigned = consumer.assignment().stream().map(TopicPartition::partition).sorted().toList();
                if (!assigned.equals(before)) say("assigned", assigned);
                before = assigned;
                for (var record : records)
                    say("partition", record.partition(), "offset", record.offset(), "value", record.value());
                if (!records.isEmpty()) consumer.commitSync();
            }
        }
        say("left", true);
    }

    static KafkaProducer<String, String> transactional(String topic) {
        var producer = producer("transactional.id", topic + "-id");
        producer.initTransactions();
        return producer;
    }

    static void begin(Producer<String, String> producer, String topic, String name) {
        producer.beginTransaction();
        for (int number = 0; number < 5; number++) producer.send(new ProducerRecord<>(topic, 0, null, name + "-" + number));
        producer.flush();
    }

    static void transactions(String topic, String group) throws Exception {
        var first = transactional(topic);
        begin(first, topic, "committed");
        first.commitTransaction();
        begin(first, topic, "aborted");
        first.abortTransaction();
        begin(first, topic, "with-offsets");
        first.sendOffsetsToTransaction(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(7)), new ConsumerGroupMetadata(group));
        first.commitTransaction();
        begin(first, topic, "fenced");
        var second = transactional(topic);
        try {
            first.commitTransaction();
        } catch (KafkaException error) {
            say("fenced", error.getClass().getSimpleName());
        }
        begin(second, topic, "last");
        second.commitTransaction();
        first.close(Duration.ofSeconds(1));
        second.close();
    }

    static void admin(String topic, String group) throws Exception {
        try (Admin admin = Admin.create(properties()); var producer = producer()) {
            NewTopic fresh = new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "-1"));
            admin.createTopics(List.of(fresh)).all().get();
            say("created", admin.listTopics().names().get().contains(topic), "partitions", partitions(admin, topic));
            try {
                admin.createTopics(List.of(fresh)).all().get();
            } catch (ExecutionException error) {
                // TopicExistsException is the name that Java has for TOPIC_ALREADY_EXISTS.
                say("created_again", error.getCause().getClass().getSimpleName().replace("TopicExists", "TopicAlreadyExists"));
            }
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
            say("partitions_grown", partitions(admin, topic));
            say("retention", config(admin, topic, "retention.ms"), "cleanup", config(admin, topic, "cleanup.policy"));
            var change = new AlterConfigOp(new ConfigEntry("retention.ms", "12345000"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic), List.of(change))).all().get();
            say("retention_altered", config(admin, topic, "retention.ms"));
            for (int number = 0; number < 5; number++) producer.send(new ProducerRecord<>(topic, 0, null, "" + number)).get();
            TopicPartition zero = new TopicPartition(topic, 0);
            var deleted = admin.deleteRecords(Map.of(zero, RecordsToDelete.beforeOffset(3)));
            say("low_watermark", deleted.lowWatermarks().get(zero).get().lowWatermark());
            var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            say("group_listed", listed(admin, group), "group_state", described.groupState().toString());
            say("group_offset", admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values().iterator().next().offset());
            admin.deleteConsumerGroups(List.of(group)).all().get();
            say("group_deleted", !listed(admin, group));
            admin.deleteTopics(List.of(topic)).all().get();
            say("deleted", !admin.listTopics().names().get().contains(topic));
        }
    }

    static int partitions(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    static String config(Admin admin, String topic, String name) throws Exception {
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name).value();
    }

    static boolean listed(Admin admin, String group) throws Exception {
        return admin.listGroups().all().get().stream().anyMatch(found -> found.groupId().equals(group));
    }
}
