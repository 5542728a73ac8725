import { type ReactNode, useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ServerSample, ServersSample } from '../../api/messages.ts';

/** Distinguishable in both colour schemes; each also has its own dashes, for colour-blind users. */
const COLOURS = ['#c2600f', '#2f74c0', '#2e8b57', '#9b4fb5', '#b8860b', '#c0455e', '#4b8c99', '#7a6a58', '#6a7fd0'];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 4], [12, 4], [4, 4], [7, 2, 1, 2]];

/** 14:05:32, in the reader's time zone. */
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** One metric of all servers over time. */
export function Plot(props: {
  readonly label: string;
  readonly names: readonly string[];
  readonly samples: readonly ServersSample[];
  value(server: ServerSample, before: ServerSample | undefined, seconds: number): number | null;
}): ReactNode {
  const { label, names, samples, value } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const key = names.join();
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const styles = getComputedStyle(document.documentElement);
    const dim = styles.getPropertyValue('--dim');
    const grid = { stroke: styles.getPropertyValue('--line'), width: 1 };
    const axis = { stroke: dim, grid, ticks: grid, font: '11px system-ui' };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: 150,
        cursor: { points: { size: 5 } },
        // At least a minute: a single point would be drawn over years.
        scales: {
          x: { range: (_, min, max) => [Math.min(min, max - 60), max] },
          y: { range: (_, _min, max) => [0, Math.max(1, max * 1.15)] },
        },
        axes: [
          { ...axis, space: 80, values: (_, splits) => splits.map((seconds) => CLOCK.format(seconds * 1000)) },
          { ...axis, size: 46 },
        ],
        series: [
          {},
          ...key.split(',').map((name, i) => {
            return {
              label: name,
              stroke: COLOURS[i % COLOURS.length]!,
              width: 1.6,
              dash: DASHES[i % DASHES.length]!,
              points: { show: false },
            };
          }),
        ],
      },
      [[]],
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 150 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [key]);
  useEffect(() => {
    const times = samples.map(({ atMs }) => atMs / 1000);
    const series = key.split(',').map((name) =>
      samples.map((sample, i) => {
        const server = sample.servers.find((one) => one.name === name);
        if (server === undefined || server.problem !== null) return null;
        const before = samples[i - 1];
        const seconds = before === undefined ? 1 : Math.max(0.1, (sample.atMs - before.atMs) / 1000);
        return value(
          server,
          before?.servers.find((one) => one.name === name),
          seconds,
        );
      }),
    );
    plot.current?.setData([times, ...series]);
  }, [samples, key, value]);
  const last = samples.at(-1);
  const before = samples.at(-2);
  const seconds = last === undefined || before === undefined ? 1 : (last.atMs - before.atMs) / 1000;
  const text = (last?.servers ?? []).map((server) => {
    const figure = value(
      server,
      before?.servers.find(({ name }) => name === server.name),
      seconds,
    );
    return `${server.name}: ${figure === null ? '–' : Math.round(figure * 10) / 10}`;
  });
  return (
    <figure className="plot">
      <figcaption>{label}</figcaption>
      <div aria-label={`${label}. ${text.join(', ')}`} ref={place} role="img" />
    </figure>
  );
}
