import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.StringJoiner;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Runs Curator's recipes in a separate process; worker-process.mjs describes the protocol on stdin and stdout.
 *
 * <pre>java CuratorWorker HOST:PORT</pre>
 */
public final class CuratorWorker {
  /** Maximum number of items in a queue, and their data. */
  private static final int WINDOW = 100;
  private static final int ITEM_BYTES = 100;

  private static final List<CuratorFramework> SESSIONS = new ArrayList<>();
  private static Run current;

  interface Participant {
    /** Runs until the run is stopping; counts `turn` down at each turn. */
    void participate(CountDownLatch turn) throws Exception;
  }

  /** The active participants and their counters. */
  private static final class Run {
    volatile boolean isStopping;
    private volatile Throwable error;
    private final List<Thread> threads = new ArrayList<>();
    private final List<CountDownLatch> turns = new ArrayList<>();
    private final List<AutoCloseable> queues = new ArrayList<>();
    private long cycles;
    private List<Long> latenciesNs = new ArrayList<>();
    private long markedNs = System.nanoTime();

    void begin(boolean hasTurns, Participant participant) {
      CountDownLatch turn = new CountDownLatch(1);
      if (hasTurns) turns.add(turn);
      Thread thread = new Thread(() -> {
        try {
          participant.participate(turn);
        } catch (Throwable failure) {
          error = failure;
        }
      });
      thread.setDaemon(true);
      threads.add(thread);
      thread.start();
    }

    void fail(Throwable failure) {
      error = failure;
    }

    /** @param latencyNs negative when there is none */
    synchronized void count(long latencyNs) {
      cycles++;
      if (latencyNs >= 0) latenciesNs.add(latencyNs);
    }

    synchronized void mark() {
      cycles = 0;
      latenciesNs = new ArrayList<>();
      markedNs = System.nanoTime();
    }

    synchronized String read() throws Exception {
      check();
      long elapsedUs = (System.nanoTime() - markedNs) / 1000;
      StringJoiner latencies = new StringJoiner(",");
      for (long latency : latenciesNs) latencies.add(String.valueOf(latency / 1000));
      return cycles + " " + elapsedUs + " " + latencies;
    }

    void waitForTurns() throws Exception {
      for (CountDownLatch turn : turns) {
        while (!turn.await(1, TimeUnit.SECONDS)) check();
      }
    }

    void stop() throws Exception {
      isStopping = true;
      for (Thread thread : threads) {
        while (thread.isAlive()) {
          thread.join(1000);
          check();
        }
      }
      for (AutoCloseable queue : queues) queue.close();
      check();
    }

    private void check() throws Exception {
      if (error != null) throw new Exception(error);
    }
  }

  /** Counts hand-overs of an exclusive resource that each holder releases at once. */
  private static final class Relay {
    private final Run run;
    private volatile long releasedNs = -1;
    private volatile boolean isTaken;

    Relay(Run run) {
      this.run = run;
    }

    void take(CountDownLatch turn) {
      if (isTaken) throw new IllegalStateException("two have it");
      isTaken = true;
      run.count(releasedNs < 0 ? -1 : System.nanoTime() - releasedNs);
      turn.countDown();
      isTaken = false;
      releasedNs = System.nanoTime();
    }
  }

  private static void runLocks(Run run, List<CuratorFramework> clients, String path) {
    Relay relay = new Relay(run);
    for (CuratorFramework client : clients) {
      InterProcessMutex mutex = new InterProcessMutex(client, path);
      run.begin(true, turn -> {
        while (!run.isStopping) {
          mutex.acquire();
          relay.take(turn);
          mutex.release();
        }
      });
    }
  }

  private static void runElections(Run run, List<CuratorFramework> clients, String path) {
    Relay relay = new Relay(run);
    for (CuratorFramework client : clients) {
      run.begin(true, turn -> {
        while (!run.isStopping) {
          // One that has resigned cannot stand again.
          try (LeaderLatch latch = new LeaderLatch(client, path)) {
            latch.start();
            latch.await();
            relay.take(turn);
          }
        }
      });
    }
  }

  /** The members also synchronize locally: before they leave, and before the next round. */
  private static void runBarriers(Run run, List<CuratorFramework> clients, String path) {
    int count = clients.size();
    boolean[] isOver = {false};
    CyclicBarrier inside = new CyclicBarrier(count);
    CyclicBarrier outside = new CyclicBarrier(count, () -> {
      run.count(-1);
      isOver[0] = run.isStopping;
    });
    for (CuratorFramework client : clients) {
      DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, path, count);
      run.begin(true, turn -> {
        while (!isOver[0]) {
          barrier.enter();
          inside.await();
          barrier.leave();
          outside.await();
          turn.countDown();
        }
      });
    }
  }

  /** Half of the clients put, the other half take. */
  private static void runQueues(Run run, List<CuratorFramework> clients, String path, String leasesPath)
      throws Exception {
    int half = clients.size() / 2;
    Set<String> pending = ConcurrentHashMap.newKeySet();
    Semaphore window = new Semaphore(WINDOW);
    AtomicLong serial = new AtomicLong();
    for (CuratorFramework client : clients.subList(half, clients.size())) {
      CountDownLatch turn = new CountDownLatch(1);
      run.turns.add(turn);
      QueueConsumer<String> consumer = new QueueConsumer<String>() {
        @Override
        public void consumeMessage(String item) {
          if (!pending.remove(item)) run.fail(new IllegalStateException(item + " was taken twice"));
          run.count(-1);
          window.release();
          turn.countDown();
        }

        @Override
        public void stateChanged(CuratorFramework framework, ConnectionState state) {}
      };
      QueueBuilder<String> builder = QueueBuilder.builder(client, consumer, TEXT, path);
      open(run, leasesPath == null ? builder : builder.lockPath(leasesPath));
    }
    for (CuratorFramework client : clients.subList(0, half)) {
      DistributedQueue<String> queue =
          open(run, QueueBuilder.builder(client, null, TEXT, path).putInBackground(false));
      run.begin(false, turn -> {
        while (!run.isStopping) {
          if (!window.tryAcquire(100, TimeUnit.MILLISECONDS)) continue;
          String value = String.format("%0" + ITEM_BYTES + "d", serial.incrementAndGet());
          pending.add(value);
          queue.put(value);
        }
      });
    }
  }

  private static DistributedQueue<String> open(Run run, QueueBuilder<String> builder) throws Exception {
    DistributedQueue<String> queue = builder.buildQueue();
    queue.start();
    run.queues.add(queue);
    return queue;
  }

  private static final QueueSerializer<String> TEXT = new QueueSerializer<String>() {
    @Override
    public byte[] serialize(String item) {
      return item.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String deserialize(byte[] bytes) {
      return new String(bytes, StandardCharsets.UTF_8);
    }
  };

  private static String answer(String address, String[] words) throws Exception {
    switch (words[0]) {
      case "start":
        connect(address, Integer.parseInt(words[3]));
        current = new Run();
        begin(words[1], SESSIONS.subList(0, Integer.parseInt(words[3])), words[2]);
        current.waitForTurns();
        return "";
      case "mark":
        current.mark();
        return "";
      case "read":
        return current.read();
      default:
        current.stop();
        return "";
    }
  }

  private static void begin(String kind, List<CuratorFramework> clients, String path) throws Exception {
    switch (kind) {
      case "lock":
        runLocks(current, clients, path);
        break;
      case "election":
        runElections(current, clients, path);
        break;
      case "barrier":
        runBarriers(current, clients, path);
        break;
      default:
        runQueues(current, clients, path, kind.equals("queue-leases") ? path + "-leases" : null);
    }
  }

  private static void connect(String address, int count) throws Exception {
    List<CuratorFramework> started = new ArrayList<>();
    while (SESSIONS.size() < count) {
      CuratorFramework client =
          CuratorFrameworkFactory.newClient(address, 60_000, 60_000, new ExponentialBackoffRetry(100, 10));
      client.start();
      started.add(client);
      SESSIONS.add(client);
    }
    for (CuratorFramework client : started) client.blockUntilConnected();
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      try {
        System.out.println("ok " + answer(arguments[0], line.split(" ")));
      } catch (Throwable failure) {
        failure.printStackTrace();
        System.out.println("error " + failure);
      }
    }
    for (CuratorFramework client : SESSIONS) client.close();
    System.exit(0);
  }
}
