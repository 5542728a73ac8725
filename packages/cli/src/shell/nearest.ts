/** The most similar name to a mistyped one, ignoring case; null when none is similar enough. */
export function nearestTo(typed: string, names: readonly string[]): string | null {
  const bound = Math.max(1, Math.floor(typed.length / 3));
  let nearest: string | null = null;
  let best = bound + 1;
  for (const name of names) {
    // Lower bound of the distance: the difference in length.
    if (Math.abs(typed.length - name.length) >= best) continue;
    const distance = editDistance(typed.toLowerCase(), name.toLowerCase());
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

/** Letters to put in, take out or change: Levenshtein's distance, by rows. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
