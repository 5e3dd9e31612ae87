import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words exactly once: {@code WordCount BOOTSTRAP count NAME STATE PROTOCOL INPUT OUTPUT} runs until its input ends.
 * Each word that comes in gives one record with its count so far, by way of a repartition topic and a changelog.
 */
public class WordCount {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] words) throws Exception {
        String input = words[5], output = words[6];
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(input)
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count(Materialized.as("counts"))
            .toStream()
            .to(output, Produced.valueSerde(Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties(words[0], words[2], words[3], words[4]));
        streams.setUncaughtExceptionHandler(error -> {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            say("error", cause.getClass().getSimpleName(), "message", String.valueOf(cause.getMessage()));
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> say("state", now.name()));
        streams.start();
        System.in.readAllBytes();
        say("closed", streams.close(Duration.ofSeconds(60)));
    }

    static Properties properties(String bootstrap, String name, String state, String protocol) {
        Properties properties = new Properties();
        properties.putAll(Map.of(
            StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
            StreamsConfig.APPLICATION_ID_CONFIG, name,
            StreamsConfig.STATE_DIR_CONFIG, state,
            StreamsConfig.GROUP_PROTOCOL_CONFIG, protocol,
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2,
            StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class,
            StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class,
            StreamsConfig.REPLICATION_FACTOR_CONFIG, 1,
            // Without a cache each count is a record, and not only the last one of each commit.
            StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0,
            StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 200));
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        // What a killed application leaves behind is over after as short a time as brokers allow.
        if (protocol.equals("classic")) {
            properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 6000);
            properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 500);
        }
        properties.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 5000);
        return properties;
    }

    static synchronized void say(Object... pairs) {
        var fact = JSON.createObjectNode();
        for (int at = 0; at < pairs.length; at += 2) fact.putPOJO((String) pairs[at], pairs[at + 1]);
        System.out.println(fact);
    }
}
