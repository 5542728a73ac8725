/** The newest values as a line of bars, the tallest for the largest: `▁▂▄█`. */
export function sparkline(values: readonly number[], width: number): string {
  const shown = values.slice(-width);
  const most = Math.max(...shown, 0);
  const bars = shown.map((value) => BARS[most === 0 ? 0 : Math.round((value / most) * (BARS.length - 1))] ?? ' ');
  return bars.join('').padStart(width);
}

const BARS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
