// Parses the reports of a worker and of the server on one slice, and computes its figures.
import { median } from '../report.mjs';

/**
 * Parses a worker's report of a slice, `<cycles> <µs> [<µs>,<µs>,…]`: number of cycles, duration, and the latency of
 * each cycle that has one.
 */
export function parseSlice(answer) {
  const [cycles, elapsedUs, latencies = ''] = answer.split(' ');
  const slice = {
    cycles: Number(cycles),
    seconds: Number(elapsedUs) / 1e6,
    latenciesUs: latencies === '' ? [] : latencies.split(',').map(Number),
  };
  if (!(slice.cycles > 0 && slice.seconds > 0))
    throw new Error(`a slice without a cycle, on a machine too busy to measure anything: ${answer}`);
  return slice;
}

/** Packets received and sent by the server since its start, from its reply to `mntr`. */
export function parsePackets(answer) {
  const counter = (name) => {
    const [, value] = answer.match(new RegExp(`^zk_${name}\\t(\\d+)$`, 'm')) ?? [];
    if (value === undefined) throw new Error(`no ${name} in the answer to mntr: ${answer}`);
    return Number(value);
  };
  return { received: counter('packets_received'), sent: counter('packets_sent') };
}

/**
 * The figures of a slice. Each request has one reply, so packets sent in excess of replies are watch events.
 *
 * @param before the packets at the beginning of the slice, `after` those at its end
 */
export function figuresOf(slice, before, after) {
  const received = after.received - before.received;
  const sent = after.sent - before.sent;
  const sorted = slice.latenciesUs.toSorted((a, b) => a - b);
  return {
    perSecond: slice.cycles / slice.seconds,
    requests: received / slice.cycles,
    // Replies that cross the slice boundaries may outnumber the requests by a few.
    events: Math.max(0, sent - received) / slice.cycles,
    ...(sorted.length === 0 ? {} : { p50Ms: median(sorted) / 1000, p99Ms: percentile(sorted, 0.99) / 1000 }),
  };
}

/**
 * Rows of a workload, for formatClientTable.
 *
 * @param workload `title`, and `cycle`: the singular and plural of what is counted
 * @param slices figures in rounds, by library
 */
export function rowsOf({ title, cycle: { one, many } }, slices) {
  const row = (name, suffix, unit, isMoreBetter) => ({
    title: `${title}: ${suffix}`,
    unit,
    isMoreBetter,
    figures: Object.fromEntries(
      Object.entries(slices).map(([library, figures]) => [library, figures.map((slice) => slice[name])]),
    ),
  });
  const hasLatency = Object.values(slices).every((figures) => figures.every(({ p50Ms }) => p50Ms !== undefined));
  return [
    row('perSecond', `${many} per second`, '', true),
    ...(hasLatency
      ? [row('p50Ms', 'release to acquire, p50', 'ms'), row('p99Ms', 'release to acquire, p99', 'ms')]
      : []),
    row('requests', `requests per ${one}`, '', false),
    row('events', `watch events per ${one}`, '', false),
  ];
}

function percentile(sorted, part) {
  return sorted[Math.ceil(sorted.length * part) - 1];
}
