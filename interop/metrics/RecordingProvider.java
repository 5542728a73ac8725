import java.io.FileWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Properties;
import java.util.function.BiConsumer;
import org.apache.zookeeper.metrics.Counter;
import org.apache.zookeeper.metrics.CounterSet;
import org.apache.zookeeper.metrics.Gauge;
import org.apache.zookeeper.metrics.GaugeSet;
import org.apache.zookeeper.metrics.MetricsContext;
import org.apache.zookeeper.metrics.MetricsProvider;
import org.apache.zookeeper.metrics.MetricsProviderLifeCycleException;
import org.apache.zookeeper.metrics.Summary;
import org.apache.zookeeper.metrics.SummarySet;
import org.apache.zookeeper.metrics.impl.DefaultMetricsProvider;

/**
 * A metrics provider for Apache's server that records registrations, one per line, in the file
 * `metricsProvider.recordTo`: `+ gauge znode_count`, `+ summary fsynctime BASIC`, `- gauge learners` on removal.
 * Apache's Prometheus provider, which Debian does not package, gets the same information.
 */
public final class RecordingProvider implements MetricsProvider {
  private final MetricsProvider inner = new DefaultMetricsProvider();
  private PrintWriter out;

  /** With `-javaagent` the jar of this class is on the class path. */
  public static void premain(String argument) {}

  @Override
  public void configure(Properties properties) throws MetricsProviderLifeCycleException {
    try {
      out = new PrintWriter(new FileWriter(properties.getProperty("recordTo")), true);
    } catch (IOException error) {
      throw new MetricsProviderLifeCycleException(error);
    }
    inner.configure(properties);
  }

  @Override
  public void start() throws MetricsProviderLifeCycleException {
    inner.start();
  }

  @Override
  public MetricsContext getRootContext() {
    return new Recording(inner.getRootContext());
  }

  @Override
  public void stop() {
    inner.stop();
  }

  @Override
  public void dump(BiConsumer<String, Object> sink) {
    inner.dump(sink);
  }

  @Override
  public void resetAllValues() {
    inner.resetAllValues();
  }

  private final class Recording implements MetricsContext {
    private final MetricsContext context;

    Recording(MetricsContext context) {
      this.context = context;
    }

    private void tell(String sign, String kind, String name) {
      synchronized (out) {
        out.println(sign + " " + kind + " " + name);
      }
    }

    @Override
    public MetricsContext getContext(String name) {
      tell("+", "context", name);
      return new Recording(context.getContext(name));
    }

    @Override
    public Counter getCounter(String name) {
      tell("+", "counter", name);
      return context.getCounter(name);
    }

    @Override
    public CounterSet getCounterSet(String name) {
      tell("+", "counter", name);
      return context.getCounterSet(name);
    }

    @Override
    public void registerGauge(String name, Gauge gauge) {
      tell("+", "gauge", name);
      context.registerGauge(name, gauge);
    }

    @Override
    public void unregisterGauge(String name) {
      tell("-", "gauge", name);
      context.unregisterGauge(name);
    }

    @Override
    public void registerGaugeSet(String name, GaugeSet gaugeSet) {
      tell("+", "gauge", name);
      context.registerGaugeSet(name, gaugeSet);
    }

    @Override
    public void unregisterGaugeSet(String name) {
      tell("-", "gauge", name);
      context.unregisterGaugeSet(name);
    }

    @Override
    public Summary getSummary(String name, DetailLevel level) {
      tell("+", "summary", name + " " + level);
      return context.getSummary(name, level);
    }

    @Override
    public SummarySet getSummarySet(String name, DetailLevel level) {
      tell("+", "summary", name + " " + level);
      return context.getSummarySet(name, level);
    }
  }
}
