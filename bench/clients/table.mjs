// The table of clients: a column for each, and in each row ours against the faster of the others.
import { formatLimit, formatRatio, formatValue, median, ratioOf } from '../report.mjs';

const OURS = 'meerkat';

/**
 * @param rows `figures`: measurements by client name, in rounds of consecutive slices; `isMoreBetter`: true for speeds,
 *   false for times; `must`: a limit, as in report.mjs
 * @param names clients in column order, ours last
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

/** Converts to a row of report.mjs; the reference is the rival with the best median. */
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
