import { EventType, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { type WatchEvent, type Watcher, WatchManager } from './watch-manager.ts';
import { WatchMode } from './watch-table.ts';

class Recorder implements Watcher {
  readonly received: string[] = [];
  onWatchEvent(event: WatchEvent): void {
    const name = Object.entries(EventType).find(([, type]) => type === event.type)?.[0];
    this.received.push(`${name} ${event.path} ${event.zxid}`);
  }
}

const OPEN = -1;
const zxid = (n: number): Zxid => n as Zxid;

describe('WatchManager', () => {
  it('fires a one-shot data watch once', () => {
    const watches = new WatchManager();
    const a = new Recorder();
    watches.data.add('/a', a, WatchMode.standard);
    watches.onDataChanged('/a', OPEN, zxid(5));
    watches.onDataChanged('/a', OPEN, zxid(6));
    expect(a.received).toEqual(['nodeDataChanged /a 5']);
    expect(watches.data.count).toBe(0);
  });

  it('sends a deletion once to a watcher of both data and children', () => {
    const watches = new WatchManager();
    const both = new Recorder();
    const child = new Recorder();
    watches.data.add('/a', both, WatchMode.standard);
    watches.child.add('/a', both, WatchMode.standard);
    watches.child.add('/a', child, WatchMode.standard);
    watches.onDeleted('/a', OPEN, '/', OPEN, zxid(7));
    expect(both.received).toEqual(['nodeDeleted /a 7']);
    expect(child.received).toEqual(['nodeDeleted /a 7']);
    expect(watches.child.count).toBe(0);
  });

  it('fires the child watch of the parent when a child is created or deleted', () => {
    const watches = new WatchManager();
    const a = new Recorder();
    watches.child.add('/', a, WatchMode.standard);
    watches.onCreated('/a', OPEN, '/', OPEN, zxid(8));
    watches.child.add('/', a, WatchMode.standard);
    watches.onDeleted('/a', OPEN, '/', OPEN, zxid(9));
    expect(a.received).toEqual(['nodeChildrenChanged / 8', 'nodeChildrenChanged / 9']);
  });

  it('keeps a persistent watch, and fires it for children, too', () => {
    const watches = new WatchManager();
    const a = new Recorder();
    watches.addPersistent('/a', a);
    watches.onDataChanged('/a', OPEN, zxid(1));
    watches.onCreated('/a/b', OPEN, '/a', OPEN, zxid(2));
    watches.onDataChanged('/a/b', OPEN, zxid(3));
    watches.onDeleted('/a', OPEN, '/', OPEN, zxid(4));
    expect(a.received).toEqual(['nodeDataChanged /a 1', 'nodeChildrenChanged /a 2', 'nodeDeleted /a 4']);
  });

  it('fires a recursive watch for every descendant, but never sends nodeChildrenChanged', () => {
    const watches = new WatchManager();
    const root = new Recorder();
    const a = new Recorder();
    watches.addRecursive('/', root);
    watches.addRecursive('/a', a);
    watches.onCreated('/a/b/c', OPEN, '/a/b', OPEN, zxid(1));
    watches.onDataChanged('/ab', OPEN, zxid(2));
    watches.onDeleted('/a', OPEN, '/', OPEN, zxid(3));
    expect(a.received).toEqual(['nodeCreated /a/b/c 1', 'nodeDeleted /a 3']);
    expect(root.received).toEqual(['nodeCreated /a/b/c 1', 'nodeDataChanged /ab 2', 'nodeDeleted /a 3']);
  });

  it('combines modes at one path, fires once and removes only the one-shot part', () => {
    const watches = new WatchManager();
    const a = new Recorder();
    watches.data.add('/a', a, WatchMode.standard);
    watches.addRecursive('/a', a);
    watches.addPersistent('/a', a);
    watches.onDataChanged('/a', OPEN, zxid(1));
    expect(a.received).toEqual(['nodeDataChanged /a 1']);
    expect(watches.has('/a', a, 2)).toBe(false);
    expect(watches.has('/a', a, 4)).toBe(true);
    expect(watches.has('/a', a, 5)).toBe(true);
  });

  it('removes a fired one-shot watch beside a recursive one, which stays', () => {
    const watches = new WatchManager();
    const a = new Recorder();
    watches.addRecursive('/a', a);
    watches.data.add('/a', a, WatchMode.standard);
    watches.onDataChanged('/a', OPEN, zxid(1));
    watches.onDataChanged('/a', OPEN, zxid(2));
    watches.onDataChanged('/a/b', OPEN, zxid(3));
    expect(a.received).toEqual(['nodeDataChanged /a 1', 'nodeDataChanged /a 2', 'nodeDataChanged /a/b 3']);
    expect(watches.remove('/a', a, 5)).toBe(true);
    watches.onDataChanged('/a/b', OPEN, zxid(4));
    expect(a.received).toHaveLength(3);
  });

  it('removes one type and leaves the others', () => {
    const watches = new WatchManager();
    const a = new Recorder();
    watches.addRecursive('/a', a);
    watches.data.add('/a', a, WatchMode.standard);
    expect(watches.remove('/a', a, 1)).toBe(false);
    expect(watches.remove('/a', a, 2)).toBe(true);
    watches.onDataChanged('/a/b', OPEN, zxid(1));
    expect(a.received).toEqual(['nodeDataChanged /a/b 1']);
    expect(watches.remove('/a', a, 3)).toBe(true);
    expect(watches.data.count).toBe(0);
  });

  it.each([
    ['persistent', 4, (watches: WatchManager, a: Watcher): void => watches.addPersistent('/a', a)],
    ['recursive', 5, (watches: WatchManager, a: Watcher): void => watches.addRecursive('/a', a)],
  ])('removes a %s watch and leaves the one-shot watches of the same watcher', (_name, watcherType, add) => {
    const watches = new WatchManager();
    const a = new Recorder();
    watches.data.add('/a', a, WatchMode.standard);
    watches.child.add('/a', a, WatchMode.standard);
    add(watches, a);
    expect(watches.remove('/a', a, watcherType)).toBe(true);
    watches.onDataChanged('/a', OPEN, zxid(1));
    watches.onCreated('/a/b', OPEN, '/a', OPEN, zxid(2));
    watches.onDataChanged('/a', OPEN, zxid(3));
    expect(a.received).toEqual(['nodeDataChanged /a 1', 'nodeChildrenChanged /a 2']);
  });

  it('removes all watches of a closed connection, and checks no ancestors when no recursive watch is left', () => {
    const watches = new WatchManager();
    const a = new Recorder();
    watches.addRecursive('/a', a);
    watches.addPersistent('/b', a);
    watches.child.add('/c', a, WatchMode.standard);
    watches.removeWatcher(a);
    watches.onDataChanged('/a/b', OPEN, zxid(1));
    expect(a.received).toEqual([]);
    expect(watches.data.pathCount + watches.child.pathCount).toBe(0);
    expect(watches.data.watcherCount).toBe(0);
  });

  it('counts no watcher twice whose watches have all fired before its connection is closed', () => {
    const watches = new WatchManager();
    const [gone, other] = [new Recorder(), new Recorder()];
    watches.data.add('/a', gone, WatchMode.standard);
    watches.data.add('/b', other, WatchMode.standard);
    watches.onDataChanged('/a', OPEN, zxid(1));
    expect(watches.data.watcherCount).toBe(1);
    watches.removeWatcher(gone);
    expect([watches.data.watcherCount, watches.data.count, watches.hasGone]).toEqual([1, 1, false]);
  });

  it('removes the watches of a closed connection with many step by step, and sends it no more events', () => {
    const watches = new WatchManager();
    const [gone, other] = [new Recorder(), new Recorder()];
    const paths = Array.from({ length: 5000 }, (_, i) => `/z${i}`);
    for (const path of paths) {
      watches.data.add(path, gone, WatchMode.standard);
      watches.addPersistent(path, gone);
    }
    watches.addRecursive('/deep', gone);
    watches.data.add('/z7', other, WatchMode.standard);
    watches.child.add('/z8', other, WatchMode.standard);
    watches.removeWatcher(gone);
    expect(watches.hasGone).toBe(true);
    expect([watches.data.count, watches.child.count, watches.data.watcherCount]).toEqual([1, 1, 1]);
    expect(watches.data.pathCount, 'nothing was done at once').toBeGreaterThan(4900);
    expect([...watches.data.paths()]).toEqual([['/z7', [other]]]);
    const turns: number[] = [];
    for (const path of ['/z7', '/z8', '/z4000', '/deep/er']) {
      watches.onDataChanged(path, OPEN, zxid(1));
      watches.onDeleted(path, OPEN, '/', OPEN, zxid(2));
      watches.sweep();
      turns.push(watches.data.pathCount);
    }
    expect(turns).toEqual([...turns].sort((a, b) => b - a));
    for (let i = 0; i < 10; i++) watches.sweep();
    expect(gone.received).toEqual([]);
    expect(other.received).toEqual(['nodeDataChanged /z7 1', 'nodeDeleted /z8 2']);
    expect(watches).toMatchObject({
      hasGone: false,
      data: { count: 0, pathCount: 0 },
      child: { count: 0, pathCount: 0 },
    });
  });

  it('lets a new watcher use the paths of a removed one', () => {
    const watches = new WatchManager();
    const [gone, next] = [new Recorder(), new Recorder()];
    const paths = Array.from({ length: 3000 }, (_, i) => `/z${i}`);
    for (const path of paths) watches.data.add(path, gone, WatchMode.standard);
    watches.removeWatcher(gone);
    for (const path of paths) watches.data.add(path, next, WatchMode.standard);
    watches.sweep();
    expect(watches.data.count).toBe(3000);
    for (const path of paths) watches.onDataChanged(path, OPEN, zxid(1));
    expect(next.received).toHaveLength(3000);
    expect(gone.received).toEqual([]);
    for (let i = 0; i < 5; i++) watches.sweep();
    expect(watches.data).toMatchObject({ count: 0, pathCount: 0, watcherCount: 0 });
  });
});
