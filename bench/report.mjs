// Formats rows of figures as a Markdown table.

/**
 * A row: figures of the reference (usually Apache's server) and of Meerkat, in pairs of consecutive slices. `must` and
 * `aim` are limits: `{ ratioMin }` and `{ ratioMax }` of Meerkat to the reference, or `{ valueMax }` of Meerkat alone.
 *
 * @typedef {{ title: string, unit: string, reference: number[], meerkat: number[], must?: object, aim?: object }} Row
 */

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** Median, minimum and maximum of the pairwise ratios of Meerkat to the reference; null without a reference. */
export function ratioOf(row) {
  const ratios = row.meerkat.map((value, i) => value / row.reference[i]).filter(Number.isFinite);
  if (ratios.length === 0) return null;
  return { median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios) };
}

export function formatTable(rows, referenceName) {
  const lines = [
    ['', referenceName, 'Meerkat', 'ratio (min … max)', 'must', 'aim'],
    ['---', '---:', '---:', '---:', '---:', '---:'],
    ...rows.map((row) => {
      const ratio = ratioOf(row);
      return [
        row.title,
        row.reference.length === 0 ? '–' : `${row.referenceNote ?? ''}${formatValue(median(row.reference), row.unit)}`,
        formatValue(median(row.meerkat), row.unit),
        ratio === null ? '–' : formatRatio(ratio),
        formatLimit(row.must, row, ratio),
        formatLimit(row.aim, row, ratio),
      ];
    }),
  ];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

export function formatRatio({ median: middle, min, max }) {
  return min === max ? `${middle.toFixed(2)}×` : `${middle.toFixed(2)}× (${min.toFixed(2)} … ${max.toFixed(2)})`;
}

export function formatLimit(limit, row, ratio) {
  if (limit === undefined) return '–';
  const mark = (isMet) => (isMet === null ? '' : isMet ? ' ✓' : ' ✗');
  if (limit.valueMax !== undefined) {
    return `≤ ${formatValue(limit.valueMax, row.unit)}${mark(median(row.meerkat) <= limit.valueMax)}`;
  }
  if (limit.ratioMin !== undefined) {
    return `≥ ${limit.ratioMin}×${mark(ratio === null ? null : ratio.median >= limit.ratioMin)}`;
  }
  return `≤ ${limit.ratioMax}×${mark(ratio === null ? null : ratio.median <= limit.ratioMax)}`;
}

export function formatValue(value, unit) {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  const figure = value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return unit === '' ? figure : `${figure} ${unit}`;
}
