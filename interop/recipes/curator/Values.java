import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryNTimes;

/** Curator's numbers, for values.test.ts. */
final class Values {
  public static void main(String[] arguments) throws Exception {
    Driver driver = new Driver(arguments);
    Map<String, SharedCount> counts = new ConcurrentHashMap<>();

    driver.on("add", words -> {
      AtomicValue<Long> result = atomic(driver, words[0]).add(Long.parseLong(words[1]));
      return result.succeeded() ? result.postValue() : "refused";
    });
    driver.on("addMany", words -> {
      for (int left = Integer.parseInt(words[1]); left > 0; ) {
        if (atomic(driver, words[0]).increment().succeeded()) left--;
      }
      return null;
    });
    driver.on("get", words -> atomic(driver, words[0]).get().postValue());

    driver.on("openCount", words -> {
      SharedCount count = new SharedCount(driver.client, words[0], Integer.parseInt(words[1]));
      count.start();
      counts.put(words[0], count);
      return count.getCount();
    });
    driver.on("setCount", words -> {
      counts.get(words[0]).setCount(Integer.parseInt(words[1]));
      return null;
    });
    driver.on("trySetCount", words -> {
      SharedCount count = counts.get(words[0]);
      return count.trySetCount(count.getVersionedValue(), Integer.parseInt(words[1]));
    });
    driver.on("getCount", words -> counts.get(words[0]).getCount());
    driver.serve();
  }

  /** With few optimistic attempts before the lock, so that both ways are used. */
  private static DistributedAtomicLong atomic(Driver driver, String path) {
    PromotedToLock lock = PromotedToLock.builder().lockPath("/locks" + path).retryPolicy(new RetryNTimes(50, 5)).build();
    return new DistributedAtomicLong(driver.client, path, new RetryNTimes(2, 1), lock);
  }
}
