import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs the main methods of Kafka's command line tools, unchanged, one after another: {@code Tools} reads
 * {@code {"tool": CLASS, "arguments": [...], "input": TEXT}} as JSON lines and answers each with what the tool printed
 * and its exit code. One virtual machine for all of them spares the start of one for each.
 */
public class Tools {
    static final ObjectMapper JSON = new ObjectMapper();
    static final List<Runnable> HOOKS = new ArrayList<>();
    static volatile CompletableFuture<Integer> ended;

    public static void main(String[] words) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure(Tools::end);
        Exit.setHaltProcedure(Tools::end);
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line; (line = input.readLine()) != null; ) out.println(JSON.writeValueAsString(run(JSON.readTree(line))));
        System.exit(0);
    }

    /** Takes the place of the end of the process: the tool goes no further. */
    static void end(int code, String message) {
        if (message != null) System.err.println(message);
        ended.complete(code);
        while (true) LockSupport.park();
    }

    static JsonNode run(JsonNode asked) throws Exception {
        var printed = new ByteArrayOutputStream();
        var complained = new ByteArrayOutputStream();
        PrintStream out = System.out, errors = System.err;
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(asked.path("input").asText().getBytes(StandardCharsets.UTF_8)));
        List<String> arguments = new ArrayList<>();
        asked.get("arguments").forEach(word -> arguments.add(word.asText()));
        String tool = asked.get("tool").asText();
        CompletableFuture<Integer> end = new CompletableFuture<>();
        ended = end;
        Thread thread = new Thread(() -> end.complete(code(tool, arguments.toArray(new String[0]))));
        thread.setDaemon(true);
        thread.start();
        int code = end.get();
        // What tools leave to the end of the process.
        HOOKS.forEach(Runnable::run);
        HOOKS.clear();
        System.setOut(out);
        System.setErr(errors);
        return JSON.createObjectNode().put("code", code).put("out", printed.toString(StandardCharsets.UTF_8))
            .put("errors", complained.toString(StandardCharsets.UTF_8));
    }

    static int code(String tool, String[] arguments) {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            return 1;
        }
    }
}
