// Projects throughput with more CPUs from the measured CPU time of the core's thread and of the other threads.
//
//   core c, others o (µs per unit of work) ─► on P CPUs, one of them for the core: min(1 / c, (P − 1) / o)
//
// Assumptions: I/O threads share their work evenly, costs stay constant, clients and the network are free.

export const PROCESSORS = [2, 4, 8, 16, 64];

/**
 * @param core µs of the core's thread per unit
 * @param process µs of all threads
 * @returns by number of CPUs: units per second, I/O threads needed, and whether the core's thread is the limit
 */
export function project({ core, process }) {
  const others = process - core;
  return PROCESSORS.map((processors) => {
    const isCore = (processors - 1) / others >= 1 / core;
    const perSecond = isCore ? 1e6 / core : ((processors - 1) * 1e6) / others;
    return { processors, perSecond, threads: Math.min(processors - 1, Math.ceil(others / core)), isCore };
  });
}

/** @param rows `{ title, without: µs of all threads with no I/O thread, core, process }`; `without` may be missing @returns Markdown */
export function formatProjection(rows) {
  const lines = [
    ['work a second', 'one processor, 0 threads', ...PROCESSORS.map((count) => `${count}`), 'I/O threads'],
    ['---', '--:', ...PROCESSORS.map(() => '--:'), '--:'],
    ...rows.map((row) => {
      const found = project(row);
      const cells = found.map(({ perSecond, isCore }) => `${formatCount(perSecond)}${isCore ? ' ◆' : ''}`);
      const without = row.without === undefined ? '–' : formatCount(1e6 / row.without);
      return [row.title, without, ...cells, `${found.at(-1).threads}`];
    }),
  ];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Rounds to three significant digits, the accuracy of the measurement. */
function formatCount(value) {
  return Number(value.toPrecision(3)).toLocaleString('en');
}
