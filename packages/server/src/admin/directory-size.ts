import { readdirSync, statSync } from 'node:fs';

/** Bytes of all files below a directory; what disappears meanwhile counts nothing. */
export function measureDirectory(path: string): number {
  try {
    return readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
      const below = `${path}/${entry.name}`;
      if (entry.isDirectory()) return sum + measureDirectory(below);
      return entry.isFile() ? sum + statSync(below).size : sum;
    }, 0);
  } catch {
    return 0;
  }
}
