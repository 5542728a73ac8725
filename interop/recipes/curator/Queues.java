import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/** Curator's queues and barriers, for queues.long.test.ts and barriers.test.ts. */
public final class Queues {
  private static final QueueSerializer<String> TEXT =
      new QueueSerializer<String>() {
        @Override
        public byte[] serialize(String item) {
          return item.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String deserialize(byte[] bytes) {
          return new String(bytes, StandardCharsets.UTF_8);
        }
      };

  /** Reports every item; an item named "slow…" takes a second. */
  private static final QueueConsumer<String> TELLING =
      new QueueConsumer<String>() {
        @Override
        public void consumeMessage(String item) throws Exception {
          Driver.event("item " + item);
          if (item.startsWith("slow")) Thread.sleep(1000);
        }

        @Override
        public void stateChanged(org.apache.curator.framework.CuratorFramework client, ConnectionState state) {}
      };

  public static void main(String[] arguments) throws Exception {
    Driver driver = new Driver(arguments);
    Map<String, DistributedDoubleBarrier> doubles = new ConcurrentHashMap<>();

    // SimpleDistributedQueue
    driver.on("offer", w -> new SimpleDistributedQueue(driver.client, w[0]).offer(w[1].getBytes()));
    driver.on("poll", w -> {
      byte[] data = new SimpleDistributedQueue(driver.client, w[0]).poll(Long.parseLong(w[1]), TimeUnit.MILLISECONDS);
      return data == null ? "" : new String(data);
    });

    // The others: `put` creates a producer, `consume` a consumer that reports items. A lock path of "-" means none.
    driver.on("put", w -> {
      DistributedQueue<String> queue = producer(driver, w[0]).buildQueue();
      queue.start();
      queue.put(w[1]);
      return null;
    });
    driver.on("putMulti", w -> {
      DistributedQueue<String> queue = producer(driver, w[0]).buildQueue();
      queue.start();
      Iterator<String> items = Arrays.asList(w).subList(1, w.length).iterator();
      queue.putMulti(() -> items.hasNext() ? items.next() : null);
      return null;
    });
    driver.on("putPriority", w -> {
      DistributedPriorityQueue<String> queue = producer(driver, w[0]).buildPriorityQueue(1);
      queue.start();
      queue.put(w[1], Integer.parseInt(w[2]));
      return null;
    });
    driver.on("putDelayed", w -> {
      DistributedDelayQueue<String> queue = producer(driver, w[0]).buildDelayQueue();
      queue.start();
      queue.put(w[1], System.currentTimeMillis() + Long.parseLong(w[2]));
      return null;
    });
    driver.on("putId", w -> {
      DistributedIdQueue<String> queue = producer(driver, w[0]).buildIdQueue();
      queue.start();
      queue.put(w[1], w[2]);
      return null;
    });
    driver.on("removeId", w -> {
      DistributedIdQueue<String> queue = producer(driver, w[0]).lockPath(w[2]).buildIdQueue();
      queue.start();
      return queue.remove(w[1]);
    });
    driver.on("consume", w -> {
      consumer(driver, w).buildQueue().start();
      return null;
    });
    driver.on("consumePriority", w -> {
      consumer(driver, w).buildPriorityQueue(1).start();
      return null;
    });
    driver.on("consumeDelayed", w -> {
      consumer(driver, w).buildDelayQueue().start();
      return null;
    });

    driver.on("set", w -> {
      new DistributedBarrier(driver.client, w[0]).setBarrier();
      return null;
    });
    driver.on("remove", w -> {
      new DistributedBarrier(driver.client, w[0]).removeBarrier();
      return null;
    });
    driver.on("wait", w -> new DistributedBarrier(driver.client, w[0]).waitOnBarrier(60, TimeUnit.SECONDS));
    driver.on("enter", w -> {
      DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(driver.client, w[0], Integer.parseInt(w[1]));
      doubles.put(w[0], barrier);
      return barrier.enter(60, TimeUnit.SECONDS);
    });
    driver.on("leave", w -> doubles.get(w[0]).leave(60, TimeUnit.SECONDS));
    driver.serve();
  }

  private static QueueBuilder<String> producer(Driver driver, String path) {
    return QueueBuilder.builder(driver.client, null, TEXT, path).putInBackground(false);
  }

  private static QueueBuilder<String> consumer(Driver driver, String[] words) {
    QueueBuilder<String> builder = QueueBuilder.builder(driver.client, TELLING, TEXT, words[0]);
    return words[1].equals("-") ? builder : builder.lockPath(words[1]);
  }
}
