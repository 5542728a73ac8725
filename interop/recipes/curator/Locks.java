import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;

/** Curator's locks, semaphore and elections, for the tests of mixed fleets. */
public final class Locks {
  interface Release {
    void run() throws Exception;
  }

  private static final Map<String, Release> HELD = new ConcurrentHashMap<>();
  private static final Map<String, ExecutorService> OWNERS = new ConcurrentHashMap<>();

  public static void main(String[] arguments) throws Exception {
    Driver driver = new Driver(arguments);
    CuratorFramework client = driver.client;

    // Curator binds a lock to the acquiring thread, so each name has its own thread.
    driver.on("acquire", words -> on(words[0], () -> {
      InterProcessLock lock = makeLock(client, words[1], words[2], words[0]);
      lock.acquire();
      HELD.put(words[0], lock::release);
      return null;
    }));
    driver.on("lease", words -> {
      InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, words[1], Integer.parseInt(words[2]));
      Lease lease = semaphore.acquire();
      HELD.put(words[0], lease::close);
      return lease.getNodeName();
    });
    driver.on("release", words -> on(words[0], () -> {
      HELD.remove(words[0]).run();
      return null;
    }));
    driver.on("revoke", words -> {
      Revoker.attemptRevoke(client, words[0]);
      return null;
    });
    driver.on("latch", words -> {
      LeaderLatch latch = new LeaderLatch(client, words[0], words[1]);
      HELD.put(words[1], latch::close);
      latch.start();
      latch.await();
      Driver.event("leading " + words[1]);
      return latch.getOurPath();
    });
    driver.on("leader", words -> {
      Participant leader = new LeaderLatch(client, words[0]).getLeader();
      return leader.getId();
    });
    driver.on("select", words -> {
      LeaderSelector selector = new LeaderSelector(client, words[0], new LeaderSelectorListenerAdapter() {
        @Override
        public void takeLeadership(CuratorFramework framework) throws Exception {
          Driver.event("leading " + words[1]);
          synchronized (Locks.class) {
            while (HELD.containsKey(words[1])) Locks.class.wait();
          }
        }
      });
      selector.setId(words[1]);
      HELD.put(words[1], () -> {
        synchronized (Locks.class) {
          Locks.class.notifyAll();
        }
      });
      selector.start();
      return null;
    });
    driver.on("count", words -> {
      for (int i = Integer.parseInt(words[3]); i > 0; i--) {
        Release release;
        if (words[0].equals("lease")) {
          release = new InterProcessSemaphoreV2(client, words[1], 1).acquire()::close;
        } else {
          InterProcessLock lock = makeLock(client, words[0], words[1], "");
          lock.acquire();
          release = lock::release;
        }
        client.setData().forPath(words[2], increased(client, words[2]));
        release.run();
      }
      return null;
    });
    driver.on("latch_count", words -> {
      for (int i = Integer.parseInt(words[3]); i > 0; i--) {
        LeaderLatch latch = new LeaderLatch(client, words[0], words[1]);
        latch.start();
        latch.await();
        byte[] next = increased(client, words[2]);
        client.transaction().forOperations(
            client.transactionOp().check().forPath(latch.getOurPath()),
            client.transactionOp().setData().forPath(words[2], next));
        latch.close();
      }
      return null;
    });
    driver.on("select_count", words -> {
      // A LeaderSelector does not expose its znode name, so writes are counted, not guarded.
      BlockingQueue<Object> done = new LinkedBlockingQueue<>();
      LeaderSelector selector = new LeaderSelector(client, words[0], new LeaderSelectorListenerAdapter() {
        @Override
        public void takeLeadership(CuratorFramework framework) {
          try {
            client.setData().forPath(words[2], increased(client, words[2]));
            done.add("done");
          } catch (Exception error) {
            done.add(error);
          }
        }
      });
      selector.setId(words[1]);
      selector.start();
      for (int i = Integer.parseInt(words[3]); i > 0; i--) {
        Object end = done.take();
        if (end instanceof Exception) throw (Exception) end;
        while (i > 1 && !selector.requeue()) Thread.sleep(1);
      }
      return null;
    });
    driver.serve();
  }

  /** The next value of a counter. */
  private static byte[] increased(CuratorFramework client, String path) throws Exception {
    int count = Integer.parseInt(new String(client.getData().forPath(path), StandardCharsets.UTF_8));
    return String.valueOf(count + 1).getBytes(StandardCharsets.UTF_8);
  }

  private static InterProcessLock makeLock(CuratorFramework client, String kind, String path, String name) {
    switch (kind) {
      case "mutex":
        return new InterProcessMutex(client, path);
      case "revocable":
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        mutex.makeRevocable(lock -> Driver.event("revoked " + name));
        return mutex;
      case "read":
        return new InterProcessReadWriteLock(client, path).readLock();
      default:
        return new InterProcessReadWriteLock(client, path).writeLock();
    }
  }

  private static Object on(String name, Callable<Object> task) throws Exception {
    ExecutorService owner = OWNERS.computeIfAbsent(name, key -> Executors.newSingleThreadExecutor(body -> {
      Thread thread = new Thread(body);
      thread.setDaemon(true);
      return thread;
    }));
    return owner.submit(task).get();
  }
}
