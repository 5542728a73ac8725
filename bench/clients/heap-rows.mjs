// What heap.mjs saw, as rows of the table and as the points themselves.

/**
 * Most bytes that a step may add to the heap for good, by the line through all points. Anything forgotten in a table
 * costs an entry of at least 40 bytes each time; what is below these limits is noise of the collector and compiler.
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

/** Least squares: bytes per count. */
function slopeOf(points) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(points.map(({ count }) => count));
  const y = mean(points.map(({ bytes }) => bytes));
  const covariance = mean(points.map(({ count, bytes }) => (count - x) * (bytes - y)));
  const variance = mean(points.map(({ count }) => (count - x) ** 2));
  return covariance / variance;
}
