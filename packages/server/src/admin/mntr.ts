import type { MetricsSource } from '../metrics/catalogue.ts';
import { type MonitorValue, monitorValues } from '../metrics/monitor.ts';
import type { MonitorBaseline } from '../metrics/monitor-baseline.ts';
import { formatDouble } from './java-text.ts';

/** `mntr`: a line `zk_<key><tab><value>` for every metric. */
export function* formatMonitor(source: MetricsSource, baseline: MonitorBaseline): Generator<string> {
  for (const value of monitorValues(source, baseline)) yield `zk_${value.key}\t${formatValue(value)}\n`;
}

function formatValue({ kind, value }: MonitorValue): string {
  return kind === 'double' ? formatDouble(Number(value)) : String(value);
}
