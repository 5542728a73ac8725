// The table of the clients: a column for each, and ours against the faster of the others, row by row.
import { formatLimit, formatRatio, formatValue, median, ratioOf } from '../report.mjs';

const OURS = 'meerkat';

/**
 * @param rows `figures`: what was measured of each client, by name, in rounds of slices taken one after the other;
 *   `isMoreBetter`: of speeds, not of times; `must`: a limit, as in report.mjs
 * @param names clients in the order of the columns, ours last
 */
export function formatClientTable(rows, names) {
  const lines = [
    [
      '',
      ...names.map((name) => (name === OURS ? 'Meerkat' : `\`${name}\``)),
      'ratio to the faster (min … max)',
      'must',
    ],
    ['---', ...names.map(() => '---:'), '---:', '---:'],
    ...rows.map((row) => {
      const compared = besideTheFaster(row, names);
      const ratio = ratioOf(compared);
      return [
        row.title,
        ...names.map((name) =>
          row.figures[name] === undefined ? '–' : formatValue(median(row.figures[name]), row.unit),
        ),
        ratio === null ? '–' : formatRatio(ratio),
        formatLimit(row.must, compared, ratio),
      ];
    }),
  ];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** The row as report.mjs knows it: the reference is the rival with the best median. */
function besideTheFaster(row, names) {
  const rivals = names.filter((name) => name !== OURS && row.figures[name] !== undefined);
  const isBetter = (a, b) => (row.isMoreBetter ? a > b : a < b);
  const best = rivals.reduce(
    (faster, name) =>
      faster === null || isBetter(median(row.figures[name]), median(row.figures[faster])) ? name : faster,
    null,
  );
  return { ...row, reference: best === null ? [] : row.figures[best], meerkat: row.figures[OURS] };
}
