import { existsSync, readdirSync } from 'node:fs';

/** How many sockets and pipes keep this process alive, by their kinds, and how many files it has open, where the system shows them. */
export function openResources(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (/TCP|Pipe/.test(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts.set('files', existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : 0);
}

/** How many more there are now. What tests before have left open may close meanwhile, so fewer are no fault. */
export function openedSince(before: ReadonlyMap<string, number>): Readonly<Record<string, number>> {
  const more = [...openResources()].map(([kind, count]) => [kind, count - (before.get(kind) ?? 0)] as const);
  return Object.fromEntries(more.filter(([, count]) => count > 0));
}
