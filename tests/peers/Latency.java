// How long a record takes from Java's producer through a broker to Java's consumer, to compare ours with.
//
//   java -cp 'KAFKA/lib/*' Latency.java BOOTSTRAP TOPIC RATE RECORDS SIZE
//
// Records are due at even distances, RATE a second; a record's time runs from when it was due. Its value begins with its
// number, 8 bytes. The producer waits for all replicas (acks=all) and for no further records (linger.ms=0). The first two
// seconds, a tenth of the records at most, are not counted. It prints what `thalweg bench latency` prints.
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

class Latency {
  private static final long PATIENCE_NANOS = 10_000_000_000L;

  private static long began;
  private static long rate;

  static long due(long index) {
    return began + index / rate * 1_000_000_000L + index % rate * 1_000_000_000L / rate;
  }

  public static void main(String[] arguments) throws Exception {
    String bootstrap = arguments[0], topic = arguments[1];
    rate = Long.parseLong(arguments[2]);
    long records = Long.parseLong(arguments[3]);
    int size = Math.max(8, Integer.parseInt(arguments[4]));
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrap, "acks", "all", "linger.ms", 0),
            new ByteArraySerializer(), new ByteArraySerializer())) {
      List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
          .map(each -> new TopicPartition(topic, each.partition())).toList();
      consumer.assign(partitions);
      consumer.seekToEnd(partitions);
      partitions.forEach(consumer::position);
      producer.partitionsFor(topic);
      began = System.nanoTime() + 500_000_000L;
      Thread sending = new Thread(() -> send(producer, topic, partitions.size(), records, size));
      sending.start();
      print(receive(consumer, records, Math.min(2 * rate, records / 10)), size);
      sending.join();
    }
  }

  static void send(KafkaProducer<byte[], byte[]> producer, String topic, int partitions, long records, int size) {
    long index = 0;
    while (index < records) {
      while (index < records && due(index) <= System.nanoTime()) {
        byte[] value = new byte[size];
        ByteBuffer.wrap(value).putLong(index);
        producer.send(new ProducerRecord<>(topic, (int) (index % partitions), null, value));
        index++;
      }
      LockSupport.parkNanos(due(index) - System.nanoTime());
    }
    producer.flush();
  }

  static long[] receive(KafkaConsumer<byte[], byte[]> consumer, long records, long warmUp) {
    long[] latencies = new long[(int) (records - warmUp)];
    int counted = 0;
    long seen = 0, lastCame = due(records);
    while (seen < records) {
      Iterable<ConsumerRecord<byte[], byte[]>> polled = consumer.poll(Duration.ofMillis(500));
      long now = System.nanoTime();
      for (ConsumerRecord<byte[], byte[]> record : polled) {
        long index = ByteBuffer.wrap(record.value()).getLong();
        seen++;
        if (index >= warmUp) latencies[counted++] = now - due(index);
        lastCame = Math.max(lastCame, now);
      }
      if (now - lastCame > PATIENCE_NANOS) {
        throw new IllegalStateException(records - seen + " of " + records + " records did not come");
      }
    }
    Arrays.sort(latencies);
    return latencies;
  }

  static void print(long[] latencies, int size) {
    System.out.printf("%d records of %d bytes at %d/s: p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, most %.3f ms%n",
        latencies.length, size, rate, at(latencies, 500), at(latencies, 990), at(latencies, 999), at(latencies, 1000));
  }

  static double at(long[] latencies, int permille) {
    long index = ((long) latencies.length * permille + 999) / 1000 - 1;
    return latencies[(int) Math.max(0, index)] / 1e6;
  }
}
