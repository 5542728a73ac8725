/** The watch table compared with a model: a list of watches. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WatchMode, WatchTable } from './watch-table.ts';

const PATHS = ['/', '/a', '/a/b', '/a/b/c', '/ab', '/d'];
const WATCHERS = ['v', 'w', 'x'];
const path = fc.constantFrom(...PATHS);
const watcher = fc.constantFrom(...WATCHERS);
const mode = fc.constantFrom(WatchMode.standard, WatchMode.persistent, WatchMode.recursive);
const modes = fc.integer({ min: 1, max: 7 });
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('add' as const), path, watcher, mode }),
    fc.record({ kind: fc.constant('remove' as const), path, watcher, modes }),
    fc.record({ kind: fc.constant('trigger' as const), path }),
    fc.record({ kind: fc.constant('leave' as const), watcher }),
    fc.record({ kind: fc.constant('sweep' as const), count: fc.nat(3) }),
  ),
  { maxLength: 60, size: 'max' },
);

/** Path, watcher, modes. */
type Held = [string, string, number];

function isAncestor(path: string, of: string): boolean {
  return of !== path && (path === '/' || of.startsWith(`${path}/`));
}

/** Successive connections under each name, with so many watches that they are swept step by step. */
class Model {
  readonly table = new WatchTable<string>();
  readonly #modes = new Map<string, number>();
  /** The step at which an entry became recursive. */
  readonly #since = new Map<string, number>();
  #step = 0;
  readonly #generation = new Map<string, number>();

  add(at: string, name: string, added: number): void {
    const id = this.#idOf(name);
    if (!this.#has(id)) for (let i = 0; i < 70; i++) this.#set(`/ballast/${i}`, id, WatchMode.standard);
    this.#set(at, id, added);
  }

  remove(at: string, name: string, removed: number): void {
    const id = this.#idOf(name);
    const key = `${at} ${id}`;
    const before = this.#modes.get(key) ?? 0;
    expect(this.table.remove(at, id, removed)).toBe((before & removed) !== 0);
    this.#put(key, before & ~removed);
  }

  /** Watchers of the path in the order of their watches, then recursive ones in that order, nearest ancestor first. */
  trigger(at: string): void {
    const isNotified = ([other, , held]: Held) =>
      other === at || (isAncestor(other, at) && (held & WatchMode.recursive) !== 0);
    const own = this.#list().filter(([other]) => other === at);
    const above = this.#list().filter((held) => held[0] !== at && isNotified(held));
    above.sort(([a, v], [b, w]) => b.length - a.length || this.#recursiveSince(a, v) - this.#recursiveSince(b, w));
    const expected = new Set([...own, ...above].map(([, id]) => id));
    for (const [other, id, held] of this.#list()) {
      if (other === at) this.#put(`${other} ${id}`, held & ~WatchMode.standard);
    }
    const notified = this.table.trigger(at);
    expect([...(notified?.keys() ?? [])]).toEqual([...expected]);
    for (const id of expected) expect(notified?.has(id)).toBe(true);
  }

  leave(name: string): void {
    const id = this.#idOf(name);
    this.table.removeWatcher(id);
    for (const key of [...this.#modes.keys()]) if (key.endsWith(` ${id}`)) this.#modes.delete(key);
    this.#generation.set(name, (this.#generation.get(name) ?? 0) + 1);
  }

  check(): void {
    const keys = [...this.#modes.keys()];
    expect(this.table.count).toBe(keys.length);
    expect(this.table.watcherCount).toBe(new Set(keys.map((key) => key.split(' ')[1])).size);
    const listed = [...this.table.paths()].flatMap(([at, ids]) => [...ids].map((id) => `${at} ${id}`));
    expect(listed.sort()).toEqual(keys.sort());
    const byWatcher = [...this.table.watchers()].flatMap(([id, paths]) => [...paths].map((at) => `${at} ${id}`));
    expect(byWatcher.sort()).toEqual(keys);
    for (const [key, held] of this.#modes) {
      const [at, id] = key.split(' ') as [string, string];
      for (const each of Object.values(WatchMode)) expect(this.table.has(at, id, each)).toBe((held & each) !== 0);
    }
  }

  #list(): Held[] {
    return [...this.#modes].map(([key, held]) => [...(key.split(' ') as [string, string]), held]);
  }

  #idOf(name: string): string {
    return `${name}${this.#generation.get(name) ?? 0}`;
  }

  #has(id: string): boolean {
    return [...this.#modes.keys()].some((key) => key.endsWith(` ${id}`));
  }

  #set(at: string, id: string, added: number): void {
    this.table.add(at, id, added);
    const key = `${at} ${id}`;
    this.#modes.set(key, (this.#modes.get(key) ?? 0) | added);
    if ((added & WatchMode.recursive) !== 0 && !this.#since.has(key)) this.#since.set(key, this.#step++);
  }

  #recursiveSince(at: string, id: string): number {
    return this.#since.get(`${at} ${id}`) ?? Number.NaN;
  }

  #put(key: string, held: number): void {
    if ((held & WatchMode.recursive) === 0) this.#since.delete(key);
    if (held === 0) this.#modes.delete(key);
    else this.#modes.set(key, held);
  }
}

test('agrees with a list of watches, while those of removed watchers are swept step by step', () => {
  fc.assert(
    fc.property(steps, (script) => {
      const model = new Model();
      for (const step of script) {
        switch (step.kind) {
          case 'add':
            model.add(step.path, step.watcher, step.mode);
            break;
          case 'remove':
            model.remove(step.path, step.watcher, step.modes);
            break;
          case 'trigger':
            model.trigger(step.path);
            break;
          case 'leave':
            model.leave(step.watcher);
            break;
          case 'sweep':
            model.table.sweep(step.count);
            break;
        }
      }
      model.check();
      model.table.sweep(1000);
      model.check();
      expect(model.table.hasGone).toBe(false);
      for (const name of WATCHERS) model.leave(name);
      model.table.sweep(1000);
      expect(model.table).toMatchObject({ count: 0, pathCount: 0, watcherCount: 0, hasGone: false });
    }),
    { numRuns: 80 },
  );
});
