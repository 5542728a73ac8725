import type { Histogram } from '@meerkat/core';
import { OpCode } from '@meerkat/protocol';
import { modeOf } from '../admin/roles.ts';
import { MEERKAT_VERSION, ZOOKEEPER_VERSION } from '../version.ts';
import {
  COUNTER_SETS,
  COUNTERS,
  GAUGE_SETS,
  GAUGES,
  type MetricsSource,
  SUMMARIES,
  SUMMARY_SETS,
} from './catalogue.ts';
import type { LoopDelay } from './loop-delay.ts';
import { processMetrics } from './process-metrics.ts';

/**
 * The page that Prometheus reads: ZooKeeper's metrics as its provider of 3.8 and 3.9 writes them (counters without `_total`,
 * the help of a family is its name), then those of the process, then Meerkat's own.
 *
 * Numbers are read and formatted per request. Quantiles cover about the last ten minutes: what was counted since a copy
 * of the counts that is at least eight minutes old, or since the start.
 */
export class Exposition {
  readonly #source: MetricsSource;
  readonly #loop: LoopDelay;
  readonly #showsProcess: boolean;
  readonly #windows = new Map<Histogram, Window>();

  /** @param showsProcess metrics of the process and of the heap, too */
  constructor(source: MetricsSource, loop: LoopDelay, showsProcess: boolean) {
    this.#source = source;
    this.#loop = loop;
    this.#showsProcess = showsProcess;
  }

  /** @param nowMs monotonic milliseconds */
  *format(nowMs: number): Generator<string> {
    // From the first reader on.
    this.#loop.start();
    yield* this.#formatZooKeeper(nowMs);
    if (this.#showsProcess) yield* formatProcess();
    yield* this.#formatOwn();
  }

  *#formatZooKeeper(nowMs: number): Generator<string> {
    const source = this.#source;
    for (const { name, value, isZeroWithout } of GAUGES) {
      const found = value(source) ?? (isZeroWithout?.(source) === true ? 0 : null);
      if (found !== null) yield `${head(name, 'gauge')}${name} ${formatNumber(found)}\n`;
    }
    for (const { name, members } of GAUGE_SETS) {
      yield head(name, 'gauge');
      for (const [key, value] of members(source)) yield `${name}{key=${quote(key)}} ${formatNumber(value)}\n`;
    }
    for (const { name, value } of COUNTERS) yield `${head(name, 'counter')}${name} ${formatNumber(value(source))}\n`;
    for (const { name, members } of COUNTER_SETS) {
      yield head(name, 'counter');
      for (const [key, value] of members(source)) yield `${name}{key=${quote(key)}} ${formatNumber(value)}\n`;
    }
    for (const { name, isAdvanced, divisor, histogram } of SUMMARIES) {
      yield head(name, 'summary');
      yield this.#formatSummary(name, '', histogram(source), { isAdvanced, divisor, nowMs });
    }
    for (const { name, isAdvanced, divisor, members } of SUMMARY_SETS) {
      yield head(name, 'summary');
      for (const [key, histogram] of members(source)) {
        yield this.#formatSummary(name, `key=${quote(key)},`, histogram, { isAdvanced, divisor, nowMs });
      }
    }
  }

  /** @param label with a comma behind it, or '' */
  #formatSummary(name: string, label: string, histogram: Histogram, form: SummaryForm): string {
    const { isAdvanced, divisor, nowMs } = form;
    let window = this.#windows.get(histogram);
    if (window === undefined) {
      window = new Window();
      this.#windows.set(histogram, window);
    }
    const since = window.since(histogram, nowMs);
    const lines = (isAdvanced ? ADVANCED : BASIC).map((part) => {
      const value = histogram.count === 0 ? Number.NaN : histogram.quantile(part, since) / divisor;
      return `${name}{${label}quantile="${part}"} ${formatNumber(value)}\n`;
    });
    const labels = label === '' ? '' : `{${label.slice(0, -1)}}`;
    const sum = formatNumber(histogram.sum / divisor);
    return `${lines.join('')}${name}_count${labels} ${formatNumber(histogram.count)}\n${name}_sum${labels} ${sum}\n`;
  }

  *#formatOwn(): Generator<string> {
    const { view, metrics, tls } = this.#source;
    const { meters, ensemble } = view;
    const version = `version=${quote(MEERKAT_VERSION)},zookeeper=${quote(ZOOKEEPER_VERSION)}`;
    yield own(
      'meerkat_info',
      'gauge',
      'Version of the server; always 1.',
      `{${version},server_id="${view.serverId}"} 1`,
    );
    const role = ensemble?.role === 'looking' && !view.isReadOnly ? 'looking' : modeOf(view);
    yield own('meerkat_role', 'gauge', 'Role of the server; always 1.', `{role="${role}"} 1`);
    const isServing = view.isServing && !view.isReadOnly;
    yield own('meerkat_serving', 'gauge', '1 while clients are served.', ` ${isServing ? 1 : 0}`);
    yield own(
      'meerkat_read_only',
      'gauge',
      '1 while only reads are answered, for want of a quorum.',
      ` ${view.isReadOnly ? 1 : 0}`,
    );
    const { lastZxid } = view;
    yield own('meerkat_zxid_epoch', 'gauge', 'Epoch of the last txn in the tree.', ` ${Math.floor(lastZxid / EPOCH)}`);
    yield own('meerkat_zxid_in_epoch', 'gauge', 'Counter of the last txn in the tree.', ` ${lastZxid % EPOCH}`);
    yield own(
      'meerkat_slow_syncs_total',
      'counter',
      'Syncs that took longer than fsync.warningthresholdms.',
      ` ${metrics.syncsOverThreshold}`,
    );
    yield describe('meerkat_refused_total', 'counter', 'Requests and connections that a limit has refused.');
    for (const [limit, count] of view.refusals()) yield `meerkat_refused_total{limit="${limit}"} ${count}\n`;
    yield `meerkat_refused_total{limit="http-connections"} ${tls().httpConnectionsExceeded}\n`;
    const requests = 'meerkat_request_duration_seconds';
    yield describe(requests, 'histogram', 'From a request to the end of the turn in which its reply leaves.');
    for (const [op, name] of OPERATIONS) {
      const histogram = meters.operation(op);
      if (histogram.count > 0) yield formatHistogram(requests, `op="${name}"`, histogram);
    }
    for (const [name, help, histogram] of [
      ['meerkat_fsync_duration_seconds', 'Writing and syncing the txns of one batch.', metrics.fsync],
      ['meerkat_proposal_duration_seconds', 'From a proposal of this leader to its commit.', metrics.quorumAck],
      ['meerkat_election_duration_seconds', 'From looking for a leader to the decision.', metrics.election],
      ['meerkat_unavailable_duration_seconds', 'From looking for a leader to serving clients.', metrics.unavailable],
      ['meerkat_snapshot_duration_seconds', 'Writing one snapshot.', metrics.snapshot],
      ['meerkat_turn_duration_seconds', 'One turn: from the first event to its replies.', meters.turns],
      [
        'meerkat_event_loop_delay_seconds',
        'How late a timer of 20 ms rings, since the first reader of this page.',
        this.#loop.delays,
      ],
    ] as const) {
      yield describe(name, 'histogram', help);
      yield formatHistogram(name, '', histogram);
    }
  }
}

interface SummaryForm {
  readonly isAdvanced: boolean;
  readonly divisor: number;
  readonly nowMs: number;
}

/** Copies of the counts of a histogram, a new one every two minutes at most. */
class Window {
  readonly #copies: { readonly atMs: number; readonly buckets: Float64Array }[] = [];

  /** @returns what the counts were when the window began */
  since(histogram: Histogram, nowMs: number): Float64Array | undefined {
    const newest = this.#copies.at(-1);
    if (histogram.count > 0 && (newest === undefined || nowMs - newest.atMs >= ROTATION_MS)) {
      this.#copies.push({ atMs: nowMs, buckets: newest === undefined ? new Float64Array(0) : histogram.copyBuckets() });
      if (this.#copies.length > ROTATIONS) this.#copies.shift();
    }
    return this.#copies[0]?.buckets;
  }
}

const ROTATION_MS = 120_000;
const ROTATIONS = 5;
const BASIC = [0.5];
const ADVANCED = [0.5, 0.9, 0.99];
const EPOCH = 2 ** 32;

/** Bounds of the buckets that are shown: powers of two in microseconds, 64 µs to 8.4 s. */
const EXPONENTS: readonly number[] = Array.from({ length: 18 }, (_, i) => i + 6);

const OPERATIONS: readonly (readonly [op: number, name: string])[] = Object.entries(OpCode).map(([name, op]) => [
  op,
  name.replaceAll(/[A-Z]+/g, (capitals) => `_${capitals.toLowerCase()}`),
]);

function formatHistogram(name: string, label: string, histogram: Histogram): string {
  const before = label === '' ? '' : `${label},`;
  const buckets = EXPONENTS.map((exponent) => {
    return `${name}_bucket{${before}le="${2 ** exponent / 1e6}"} ${histogram.countBelow(exponent)}\n`;
  });
  const labels = label === '' ? '' : `{${label}}`;
  const all = `${name}_bucket{${before}le="+Inf"} ${histogram.count}\n`;
  return `${buckets.join('')}${all}${name}_sum${labels} ${histogram.sum / 1e6}\n${name}_count${labels} ${histogram.count}\n`;
}

function* formatProcess(): Generator<string> {
  for (const { name, type, help, labels = '', value } of processMetrics()) {
    yield `${describe(name, type, help)}${name}${labels} ${formatNumber(value)}\n`;
  }
}

function own(name: string, type: string, help: string, sample: string): string {
  return `${describe(name, type, help)}${name}${sample}\n`;
}

function head(name: string, type: string): string {
  return describe(name, type, name);
}

function describe(name: string, type: string, help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

/** Names may hold any text of clients. */
function quote(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`;
}

/** As Java writes a double, for those who compare texts: `6.0`. */
function formatNumber(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e7 ? `${value}.0` : String(value);
}
