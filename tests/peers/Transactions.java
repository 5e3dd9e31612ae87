// How many transactions Java's producer commits one after the other, to compare brokers and our producer with.
//
//   java -cp 'KAFKA/lib/*' Transactions.java BOOTSTRAP TOPIC TRANSACTIONS RECORDS SIZE
//
// Each has RECORDS records of SIZE bytes, dealt to the topic's partitions in turn. A tenth as many come before and are not
// counted. It prints what `thalweg bench transactions` prints.
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

class Transactions {
  public static void main(String[] arguments) throws Exception {
    String bootstrap = arguments[0], topic = arguments[1];
    int transactions = Integer.parseInt(arguments[2]), records = Integer.parseInt(arguments[3]);
    byte[] value = new byte[Integer.parseInt(arguments[4])];
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
        Map.of("bootstrap.servers", bootstrap, "transactional.id", "bench-" + topic),
        new ByteArraySerializer(), new ByteArraySerializer())) {
      producer.initTransactions();
      int partitions = producer.partitionsFor(topic).size();
      commit(producer, topic, partitions, transactions / 10, records, value);
      long began = System.nanoTime();
      commit(producer, topic, partitions, transactions, records, value);
      double seconds = (System.nanoTime() - began) / 1e9;
      System.out.printf(
          "committed %d transactions of %d records in %.3f s: %.1f transactions/s%n",
          transactions, records, seconds, transactions / seconds);
    }
  }

  static void commit(
      KafkaProducer<byte[], byte[]> producer, String topic, int partitions, int transactions, int records, byte[] value) {
    for (int transaction = 0; transaction < transactions; transaction++) {
      producer.beginTransaction();
      for (int record = 0; record < records; record++) {
        producer.send(new ProducerRecord<>(topic, record % partitions, null, value));
      }
      // Committing does so, too; but Java's sender, where it looks for what is left to send just before the records are
      // there, then ends the transaction ahead of them (one in some thousands of short ones, on every broker).
      producer.flush();
      producer.commitTransaction();
    }
  }
}
