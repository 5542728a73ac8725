// Turns the JSON lines of compare.sh into Markdown.
//   node table.mjs FILE [NAME_A [NAME_B]]
// Absolute figures are medians; ratios are the median (min..max) of the pairwise B/A.
import fs from 'node:fs';

const [file, nameA = 'A', nameB = 'B'] = process.argv.slice(2);
const rows = fs
  .readFileSync(file, 'utf8')
  .trim()
  .split('\n')
  .map((l) => JSON.parse(l));

// The four figures of each workload: throughput, work per server-CPU-second, p50 and p99 in us, peak RSS.
const figures = (r) => {
  switch (r.mode) {
    case 'ready':
      return { p50: r.ready_ms * 1000 };
    case 'watchfan':
      return {
        tput: r.events_per_s_fanout,
        cpu: r.ops_per_cpu_s,
        p50: r.lat_us.send_to_last.p50,
        p99: r.lat_us.send_to_last.p99,
        rss: r.rss_peak_mb,
      };
    case 'sessions':
      return {
        tput: r.connects_per_s,
        cpu: r.cpu_connect_s ? r.sessions / r.cpu_connect_s : undefined,
        p50: r.lat_us.connect?.p50,
        p99: r.lat_us.connect?.p99,
        rss: r.rss_after_mb,
      };
    default: {
      const l = r.lat_us.all ?? r.lat_us;
      return { tput: r.ops_per_s, cpu: r.ops_per_cpu_s, p50: l.p50, p99: l.p99, rss: r.rss_peak_mb };
    }
  }
};
const COLS = [
  ['tput', 'ops/s'],
  ['cpu', 'ops per server-CPU-s'],
  ['p50', 'p50 us'],
  ['p99', 'p99 us'],
  ['rss', 'peak RSS MB'],
];

const median = (a) => {
  const s = [...a].sort((x, y) => x - y);
  return s.length % 2 ? s[s.length >> 1] : (s[s.length / 2 - 1] + s[s.length / 2]) / 2;
};
const num = (v) => (v === undefined ? '–' : v >= 100 ? Math.round(v).toLocaleString('en-US') : v.toFixed(1));

const workloads = [...new Set(rows.map((r) => r.workload))];
const of = (w, e) =>
  rows.filter((r) => r.workload === w && r.engine === e).map((r) => ({ pair: r.pair, ...figures(r.r) }));
const line = (cells) => console.log(`| ${cells.join(' | ')} |`);

for (const [e, name] of [
  ['A', nameA],
  ['B', nameB],
]) {
  if (!rows.some((r) => r.engine === e)) continue;
  console.log(`\nAbsolute, ${name} (median; in parentheses max/min over the runs):\n`);
  line(['workload', ...COLS.map((c) => c[1])]);
  line(['---', ...COLS.map(() => '---:')]);
  for (const w of workloads) {
    line([
      w,
      ...COLS.map(([k]) => {
        const v = of(w, e)
          .map((f) => f[k])
          .filter((x) => x !== undefined);
        return v.length ? `${num(median(v))} (${(Math.max(...v) / Math.min(...v)).toFixed(2)})` : '–';
      }),
    ]);
  }
}
if (rows.some((r) => r.engine === 'B')) {
  console.log(
    `\nRatio ${nameB} / ${nameA}: median (min..max) of the pairs. Throughput and ops per CPU: above 1 is better for ${nameB}; latency and RSS: below 1 is better.\n`,
  );
  line(['workload', ...COLS.map((c) => c[1])]);
  line(['---', ...COLS.map(() => '---:')]);
  const logs = Object.fromEntries(COLS.map(([k]) => [k, []]));
  for (const w of workloads) {
    const a = of(w, 'A');
    const b = of(w, 'B');
    line([
      w,
      ...COLS.map(([k]) => {
        const q = a.flatMap((x) => b.filter((y) => y.pair === x.pair && x[k] > 0 && y[k] > 0).map((y) => y[k] / x[k]));
        if (!q.length) return '–';
        logs[k].push(Math.log(median(q)));
        return `${median(q).toFixed(2)} (${Math.min(...q).toFixed(2)}..${Math.max(...q).toFixed(2)})`;
      }),
    ]);
  }
  line([
    '**geometric mean**',
    ...COLS.map(([k]) =>
      logs[k].length ? Math.exp(logs[k].reduce((x, y) => x + y, 0) / logs[k].length).toFixed(2) : '–',
    ),
  ]);
}
