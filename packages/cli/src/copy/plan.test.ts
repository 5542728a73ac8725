import { acl } from '@meerkat/client';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Policy, plan, type Step } from './plan.ts';
import { arbitraryTree, collect, makeEntry, streamOf } from './testing/arbitrary-tree.ts';
import { compareInTreeOrder, differencesOf, isBelow, type TreeEntry } from './tree-entry.ts';

const MIRROR: Policy = { existing: 'overwrite', isMirror: true, ephemeralsAsPersistent: false };
const KINDS = ['persistent', 'persistent', 'ephemeral'] as const;

function steps(source: readonly TreeEntry[], target: readonly TreeEntry[], policy: Policy): Promise<Step[]> {
  return collect(plan(streamOf(source), streamOf(target), policy));
}

/** A service that carries out steps, and refuses what a service refuses. */
function apply(target: readonly TreeEntry[], plan: readonly Step[]): readonly TreeEntry[] {
  const znodes = new Map(target.map((entry) => [entry.path, entry]));
  const hasChildren = (path: string) => [...znodes.keys()].some((other) => isBelow(other, path));
  for (const step of plan) {
    const { path, action } = step;
    if (action === 'delete' || action === 'replace') {
      expect(znodes.has(path) && !hasChildren(path)).toBe(true);
      znodes.delete(path);
    }
    if (action === 'create' || action === 'replace') {
      const parent = znodes.get(path.replace(/\/[^/]*$/, '') || '/');
      expect(znodes.has(path)).toBe(false);
      expect(path === '/' || (parent !== undefined && parent.kind !== 'ephemeral')).toBe(true);
      znodes.set(path, step.entry);
    }
    if (action === 'change') znodes.set(path, { ...step.entry });
  }
  return [...znodes.values()].toSorted((a, b) => compareInTreeOrder(a.path, b.path));
}

test('a mirror has what the source has, and beyond that only what ephemeral znodes of its own need', async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryTree({ kinds: KINDS }), arbitraryTree({ kinds: KINDS }), async (source, target) => {
      const copy = apply(target, await steps(source, target, MIRROR));
      const wanted = source.filter(({ kind }) => kind !== 'ephemeral');
      for (const entry of wanted) {
        const copied = copy.find(({ path }) => path === entry.path);
        expect(copied === undefined ? ['missing'] : differencesOf(entry, copied)).toEqual([]);
      }
      for (const { path } of copy) {
        const isWanted = wanted.some((entry) => entry.path === path);
        const isInUse = copy.some(
          (other) => other.kind === 'ephemeral' && (other.path === path || isBelow(other.path, path)),
        );
        expect(isWanted || isInUse).toBe(true);
      }
      // Nothing is left to do: that is how a copy is verified.
      const left = await steps(source, copy, MIRROR);
      expect(left.filter(({ action }) => action !== 'leave')).toEqual([]);
    }),
  );
});

test('without a word about it nothing that differs is touched, and everything else is copied', async () => {
  const policy: Policy = { existing: 'refuse', isMirror: false, ephemeralsAsPersistent: true };
  await fc.assert(
    fc.asyncProperty(arbitraryTree({ kinds: KINDS }), arbitraryTree(), async (source, target) => {
      const planned = await steps(source, target, policy);
      for (const { path, action } of planned) {
        const isThere = target.some((entry) => entry.path === path);
        expect(isThere ? ['leave', 'conflict'] : ['create']).toContain(action);
      }
      for (const step of planned) if (step.action === 'create') expect(step.entry.kind).toBe('persistent');
    }),
  );
});

test('the newer of two wins with --update, and an ACL follows data that are the same', async () => {
  const policy: Policy = { existing: 'update', isMirror: false, ephemeralsAsPersistent: false };
  const [old, young] = [makeEntry('/', { mtime: 1 }), makeEntry('/', { mtime: 2, data: Uint8Array.of(1) })];
  expect(await steps([young], [old], policy)).toMatchObject([{ action: 'change', what: ['data'] }]);
  expect(await steps([old], [young], policy)).toEqual([{ action: 'leave', path: '/', reason: 'newer' }]);
  const locked = makeEntry('/', { mtime: 0, acl: [{ scheme: 'world', id: 'anyone', perms: 1 }] });
  expect(await steps([locked], [old], policy)).toMatchObject([{ action: 'change', what: ['acl'] }]);
});

test('an interrupted copy that left an extra ACL entry is finished, under every policy', async () => {
  const source = makeEntry('/', { acl: [acl.world('r')] });
  const target = makeEntry('/', { acl: [acl.world('r'), acl.ip('10.0.0.1', 'ca')] });
  for (const existing of ['refuse', 'skip', 'update', 'overwrite'] as const) {
    const policy: Policy = { existing, isMirror: false, ephemeralsAsPersistent: false };
    expect(await steps([source], [target], policy)).toMatchObject([{ action: 'finish', path: '/' }]);
    expect(await steps([target], [source], policy)).not.toMatchObject([{ action: 'finish' }]);
  }
});
