// The results of heap.mjs, as rows of the table and as points.

/**
 * Maximum bytes that a step may add to the heap permanently, by linear regression. A leaked table entry costs at least
 * 40 bytes; less than these limits is noise of the garbage collector and the compiler.
 */
const WAYS = [
  { name: 'operations', title: 'operations', bytesMax: 1 },
  { name: 'streams', title: 'watch streams opened and closed', bytesMax: 8 },
  { name: 'removed', title: 'one-shot watches left and removed', bytesMax: 8 },
  { name: 'fired', title: 'one-shot watches left and fired', bytesMax: 8 },
];

export function heapRows(measured) {
  const rows = [];
  const series = [];
  for (const { name, title, bytesMax } of WAYS) {
    const points = measured[name];
    const total = points.at(-1).count.toLocaleString('en-US');
    rows.push({
      title: `heap over ${total} ${title}: slope`,
      unit: 'B each',
      figures: { meerkat: [slopeOf(points)] },
      must: { valueMax: bytesMax },
    });
    const megabytes = points.map(({ bytes }) => (bytes / 1e6).toFixed(2)).join(', ');
    const resident = `${(points[0].residentBytes / 1e6).toFixed(0)} → ${(points.at(-1).residentBytes / 1e6).toFixed(0)}`;
    series.push(`${total} ${title}, heap after collection in MB at each tenth: ${megabytes} (resident ${resident})`);
  }
  return { rows, series };
}

/** Slope by least squares, in bytes per step. */
function slopeOf(points) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(points.map(({ count }) => count));
  const y = mean(points.map(({ bytes }) => bytes));
  const covariance = mean(points.map(({ count, bytes }) => (count - x) * (bytes - y)));
  const variance = mean(points.map(({ count }) => (count - x) ** 2));
  return covariance / variance;
}
