import { modeOf, peerStateOf } from '../admin/roles.ts';
import { FULL_VERSION } from '../version.ts';
import {
  COUNTER_SETS,
  COUNTERS,
  GAUGE_SETS,
  GAUGES,
  type MetricsSource,
  SUMMARIES,
  SUMMARY_SETS,
} from './catalogue.ts';
import type { Counted, MonitorBaseline } from './monitor-baseline.ts';

/** A value of `mntr`: text, a whole number, or one that Java has as a double. */
export interface MonitorValue {
  readonly key: string;
  readonly kind: 'text' | 'integer' | 'double';
  readonly value: string | number;
}

/**
 * The keys of `mntr` and of the admin command `monitor`, without `zk_`, in their order: who the server is, the gauges
 * beginning with those of ZooKeeper 3.4, counters, summaries, sets.
 *
 * A key that is not a name by the rules of collectors (letters, digits, `_`, `.` and `-`) ends the work of some of them, so
 * that of a namespace with another name nothing is shown.
 */
export function* monitorValues(source: MetricsSource, baseline: MonitorBaseline): Generator<MonitorValue> {
  const { view } = source;
  yield text('version', FULL_VERSION);
  yield text('server_state', modeOf(view));
  if (view.ensemble !== null && !view.isReadOnly) {
    yield text('peer_state', peerStateOf(view.ensemble));
    if (view.ensemble.role === 'observing') yield integer('observer_master_id', view.ensemble.observerMaster ?? -1);
  }
  for (const { name, value, isDouble } of GAUGES) {
    const found = value(source);
    if (found === null) continue;
    yield isDouble === true ? double(name, found) : integer(name, found);
  }
  for (const { name, value } of COUNTERS) yield integer(name, baseline.since(name, value(source)));
  for (const { name, histogram, isAdvanced, divisor } of SUMMARIES) {
    yield* summary(name, baseline.counted(histogram(source)), isAdvanced, divisor);
  }
  for (const { name, members, isAdvanced, divisor } of SUMMARY_SETS) {
    for (const [key, histogram] of members(source)) {
      if (isPlainKey(key)) yield* summary(`${key}_${name}`, baseline.counted(histogram), isAdvanced, divisor);
    }
  }
  for (const { name, members } of GAUGE_SETS) {
    for (const [key, value] of members(source)) if (isPlainKey(key)) yield integer(`${key}_${name}`, value);
  }
  for (const { name, members } of COUNTER_SETS) {
    for (const [key, value] of members(source)) {
      if (isPlainKey(key)) yield integer(`${key}_${name}`, baseline.since(`${key}_${name}`, value));
    }
  }
}

function* summary(name: string, counted: Counted, isAdvanced: boolean, divisor: number): Generator<MonitorValue> {
  const { count, sum, min, max } = counted;
  const whole = (value: number): number => Math.round(value / divisor);
  yield double(`avg_${name}`, count === 0 ? 0 : sum / count / divisor);
  yield integer(`min_${name}`, whole(min));
  yield integer(`max_${name}`, whole(max));
  yield integer(`cnt_${name}`, count);
  yield integer(`sum_${name}`, whole(sum));
  if (!isAdvanced) return;
  yield integer(`p50_${name}`, whole(counted.quantile(0.5)));
  yield integer(`p95_${name}`, whole(counted.quantile(0.95)));
  yield integer(`p99_${name}`, whole(counted.quantile(0.99)));
  yield integer(`p999_${name}`, whole(counted.quantile(0.999)));
}

function isPlainKey(key: string): boolean {
  return /^[\w.-]+$/.test(key);
}

function text(key: string, value: string): MonitorValue {
  return { key, kind: 'text', value };
}

function integer(key: string, value: number): MonitorValue {
  return { key, kind: 'integer', value };
}

function double(key: string, value: number): MonitorValue {
  return { key, kind: 'double', value };
}
