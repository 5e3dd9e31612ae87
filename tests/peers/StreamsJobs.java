// The benchmark's stream jobs on Kafka Streams, exactly once and on one thread, to compare ours with.
//
//   java -cp 'KAFKA/lib/*' StreamsJobs.java BOOTSTRAP STATE_DIRECTORY TOPIC RECORDS stateless|count|window
//
// The topic holds records with a key of 8 bytes, a big-endian number, and a value of bytes. A run ends when RECORDS
// of them have gone through and the application is closed, which commits. It prints records per second of this
// process's CPU time, which is counted from the first record on: the start of the virtual machine is left out.
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;

class StreamsJobs {
  /** Counts what comes in. Only the one stream thread writes here. */
  static final class Gate {
    final CountDownLatch opened = new CountDownLatch(1);
    final CountDownLatch passed = new CountDownLatch(1);
    final long expected;
    long seen;

    Gate(long expected) {
      this.expected = expected;
    }

    void pass() {
      seen++;
      if (seen == 1) opened.countDown();
      if (seen == expected) passed.countDown();
    }
  }

  public static void main(String[] arguments) throws Exception {
    String bootstrap = arguments[0], state = arguments[1], topic = arguments[2], job = arguments[4];
    Gate gate = new Gate(Long.parseLong(arguments[3]));
    String out = makeOutput(bootstrap, topic);
    Properties settings = new Properties();
    settings.putAll(Map.of(
        StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
        StreamsConfig.APPLICATION_ID_CONFIG, "jobs-" + job + "-" + System.nanoTime(),
        StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2,
        StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100,
        StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1,
        StreamsConfig.REPLICATION_FACTOR_CONFIG, 1,
        StreamsConfig.STATE_DIR_CONFIG, state,
        "auto.offset.reset", "earliest"));
    OperatingSystemMXBean machine = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    KafkaStreams streams = new KafkaStreams(topology(topic, out, job, gate).build(), settings);
    streams.start();
    gate.opened.await();
    long before = machine.getProcessCpuTime();
    gate.passed.await();
    streams.close();
    double seconds = (machine.getProcessCpuTime() - before) / 1e9;
    System.out.printf("%s: %.0f rec/cpu-s%n", job, gate.seen / seconds);
    System.exit(0);
  }

  static StreamsBuilder topology(String topic, String out, String job, Gate gate) {
    StreamsBuilder builder = new StreamsBuilder();
    KStream<Long, byte[]> records = builder
        .stream(topic, Consumed.with(Serdes.Long(), Serdes.ByteArray()))
        .peek((key, value) -> gate.pass());
    switch (job) {
      case "stateless" -> records
          .filter((key, value) -> value[0] >= 0)
          .mapValues(value -> {
            byte[] changed = value.clone();
            changed[0] ^= 1;
            return changed;
          })
          .to(out, Produced.with(Serdes.Long(), Serdes.ByteArray()));
      case "count" -> records
          .groupByKey()
          .count(Materialized.as("counts"))
          .toStream()
          .to(out, Produced.with(Serdes.Long(), Serdes.Long()));
      case "window" -> records
          .groupByKey()
          .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(60)))
          .count(Materialized.as("windows"))
          .toStream((window, count) -> window.key())
          .to(out, Produced.with(Serdes.Long(), Serdes.Long()));
      default -> throw new IllegalArgumentException(job + " is not stateless, count or window");
    }
    return builder;
  }

  static String makeOutput(String bootstrap, String topic) throws Exception {
    String out = topic + "-out";
    try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
      if (!admin.listTopics().names().get().contains(out)) {
        int partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        NewTopic made = new NewTopic(out, partitions, (short) 1).configs(Map.of("retention.ms", "-1"));
        admin.createTopics(List.of(made)).all().get();
      }
    }
    return out;
  }
}
