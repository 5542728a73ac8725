import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.zookeeper.CreateMode;

/** Curator's groups, persistent nodes and discovery, for groups.long.test.ts. */
public final class Groups {
  public static void main(String[] arguments) throws Exception {
    Driver driver = new Driver(arguments);
    Map<String, GroupMember> members = new ConcurrentHashMap<>();
    Map<String, PersistentNode> nodes = new ConcurrentHashMap<>();
    Map<String, PersistentTtlNode> ttlNodes = new ConcurrentHashMap<>();
    Map<String, ServiceDiscovery<Object>> discoveries = new ConcurrentHashMap<>();
    Map<String, ServiceInstance<Object>> instances = new ConcurrentHashMap<>();
    Map<String, ServiceCache<Object>> caches = new ConcurrentHashMap<>();

    driver.on("join", w -> {
      GroupMember member = new GroupMember(driver.client, w[0], w[1], w[2].getBytes());
      members.put(w[1], member);
      member.start();
      return null;
    });
    driver.on("leave", w -> {
      members.remove(w[0]).close();
      return null;
    });
    driver.on("members", w ->
        members.get(w[0]).getCurrentMembers().entrySet().stream()
            .map(member -> member.getKey() + "=" + new String(member.getValue()))
            .sorted()
            .collect(Collectors.joining(",")));

    driver.on("node", w -> {
      PersistentNode node = new PersistentNode(driver.client, CreateMode.EPHEMERAL, false, w[0], w[1].getBytes());
      nodes.put(w[0], node);
      node.start();
      return node.waitForInitialCreate(60, TimeUnit.SECONDS);
    });
    driver.on("closeNode", w -> {
      nodes.remove(w[0]).close();
      return null;
    });
    driver.on("ttlNode", w -> {
      PersistentTtlNode node = new PersistentTtlNode(driver.client, w[0], Long.parseLong(w[1]), w[2].getBytes());
      ttlNodes.put(w[0], node);
      node.start();
      return node.waitForInitialCreate(60, TimeUnit.SECONDS);
    });
    driver.on("closeTtlNode", w -> {
      ttlNodes.remove(w[0]).close();
      return null;
    });

    driver.on("discovery", w -> {
      ServiceDiscovery<Object> discovery =
          ServiceDiscoveryBuilder.builder(Object.class).client(driver.client).basePath(w[0]).build();
      discovery.start();
      discoveries.put(w[0], discovery);
      return null;
    });
    driver.on("register", w -> {
      ServiceInstance<Object> instance =
          ServiceInstance.<Object>builder()
              .name(w[1])
              .id(w[2])
              .address(w[3])
              .port(Integer.parseInt(w[4]))
              .payload(Map.of("zone", w[5]))
              .uriSpec(new UriSpec("{scheme}://{address}:{port}/{name}"))
              .build();
      instances.put(w[2], instance);
      discoveries.get(w[0]).registerService(instance);
      return null;
    });
    driver.on("unregister", w -> {
      discoveries.get(w[0]).unregisterService(instances.remove(w[1]));
      return null;
    });
    driver.on("names", w -> String.join(",", new TreeSet<>(discoveries.get(w[0]).queryForNames())));
    driver.on("instances", w -> describe(discoveries.get(w[0]).queryForInstances(w[1])));
    driver.on("follow", w -> {
      ServiceCache<Object> cache = discoveries.get(w[0]).serviceCacheBuilder().name(w[1]).build();
      cache.start();
      caches.put(w[1], cache);
      return null;
    });
    driver.on("followed", w -> describe(caches.get(w[0]).getInstances()));
    driver.serve();
  }

  private static String describe(Iterable<ServiceInstance<Object>> found) {
    TreeSet<String> described = new TreeSet<>();
    for (ServiceInstance<Object> instance : found) {
      String uri = instance.buildUriSpec();
      described.add(instance.getId() + "|" + uri + "|" + String.valueOf(instance.getPayload()).replace(" ", ""));
    }
    return String.join(",", described);
  }
}
