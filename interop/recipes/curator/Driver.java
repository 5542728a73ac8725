import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * The Java side of {@code interop/recipes/harness.ts}: reads commands as lines and runs each in its own thread.
 *
 * <pre>
 * public static void main(String[] arguments) throws Exception {
 *   Driver driver = new Driver(arguments);
 *   driver.on("acquire", words -> ...);
 *   driver.serve();
 * }
 * </pre>
 */
final class Driver {
  interface Command {
    /** @return the answer; null for an empty one */
    Object run(String[] words) throws Exception;
  }

  final CuratorFramework client;
  private final Map<String, Command> commands = new ConcurrentHashMap<>();

  /** @param arguments the server address first */
  Driver(String[] arguments) {
    client = CuratorFrameworkFactory.newClient(arguments[0], 30_000, 30_000, new ExponentialBackoffRetry(100, 10));
    client.start();
  }

  void on(String verb, Command command) {
    commands.put(verb, command);
  }

  /** Reports an event to the test. */
  static void event(String text) {
    print("event " + text);
  }

  /** Runs commands until the input ends; then closes the session. */
  void serve() throws Exception {
    client.blockUntilConnected();
    event("ready");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.trim().split(" ");
      Thread thread = new Thread(() -> run(words));
      thread.setDaemon(true);
      thread.start();
    }
    client.close();
    System.exit(0);
  }

  private void run(String[] words) {
    try {
      Object answer = commands.get(words[1]).run(Arrays.copyOfRange(words, 2, words.length));
      print(words[0] + " ok " + (answer == null ? "" : answer));
    } catch (Throwable error) {
      print(words[0] + " error " + error);
    }
  }

  private static synchronized void print(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
