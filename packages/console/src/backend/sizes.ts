import type { SizeNode } from '../api/messages.ts';

interface Total {
  count: number;
  bytes: number;
}

/** The sizes at and below a path, two levels deep: the largest children of each, and the rest combined. */
export function sizesBelow(sizes: ReadonlyMap<string, number>, path: string, by: 'bytes' | 'count'): SizeNode {
  const prefix = path === '/' ? '/' : `${path}/`;
  const root: Total = { count: 0, bytes: 0 };
  const children = new Map<string, Total>();
  const grandchildren = new Map<string, Map<string, Total>>();
  for (const [znode, bytes] of sizes) {
    if (znode !== path && !znode.startsWith(prefix)) continue;
    add(root, bytes);
    if (znode === path) continue;
    const end = znode.indexOf('/', prefix.length);
    const name = end < 0 ? znode.slice(prefix.length) : znode.slice(prefix.length, end);
    addTo(children, name, bytes);
    if (end < 0) continue;
    const secondEnd = znode.indexOf('/', end + 1);
    const second = secondEnd < 0 ? znode.slice(end + 1) : znode.slice(end + 1, secondEnd);
    let below = grandchildren.get(name);
    if (below === undefined) {
      below = new Map();
      grandchildren.set(name, below);
    }
    addTo(below, second, bytes);
  }
  return {
    name: path,
    path,
    ...root,
    children: largest(children, prefix, by, CHILDREN_MAX).map((child) => {
      const below = grandchildren.get(child.name);
      if (child.path === '' || below === undefined) return child;
      return { ...child, children: largest(below, `${child.path}/`, by, GRANDCHILDREN_MAX) };
    }),
  };
}

function largest(totals: ReadonlyMap<string, Total>, prefix: string, by: 'bytes' | 'count', max: number): SizeNode[] {
  const sorted = [...totals].sort(([, a], [, b]) => b[by] - a[by]);
  const shown = sorted
    .slice(0, max)
    .map(([name, total]) => ({ name, path: `${prefix}${name}`, ...total, children: [] }));
  const rest = sorted.slice(max);
  if (rest.length === 0) return shown;
  const others = { count: 0, bytes: 0 };
  for (const [, { count, bytes }] of rest) {
    others.count += count;
    others.bytes += bytes;
  }
  return [...shown, { name: `${rest.length}`, path: '', ...others, children: [] }];
}

function addTo(totals: Map<string, Total>, name: string, bytes: number): void {
  const total = totals.get(name);
  if (total === undefined) totals.set(name, { count: 1, bytes });
  else add(total, bytes);
}

function add(total: Total, bytes: number): void {
  total.count++;
  total.bytes += bytes;
}

const CHILDREN_MAX = 60;
const GRANDCHILDREN_MAX = 20;
