import { AddWatchMode, EventType, OPEN_ACL, OpCode, type Txn, WatcherType, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { PLAIN_AUTHENTICATOR } from '../testing/plain-authenticator.ts';
import { Database } from '../tree/database.ts';
import { type WatchEvent, WatchManager } from '../watch/watch-manager.ts';
import type { Client } from './client.ts';
import { Permission } from './permission.ts';
import { ReadAccess } from './read-access.ts';
import { WatchRequests } from './watch-requests.ts';
import { WatchRestoration } from './watch-restoration.ts';
import { WorkMeter } from './work-meter.ts';

const NAMES = Object.fromEntries(Object.entries(EventType).map(([name, type]) => [type, name]));
const { persistent, persistentRecursive } = AddWatchMode;

interface WatchLists {
  readonly data?: readonly string[];
  readonly exist?: readonly string[];
  readonly child?: readonly string[];
  readonly persistent?: readonly string[];
  readonly recursive?: readonly string[];
}

/** A client of a server with the znode `/a`, on which it sets watches. */
class Bench {
  readonly events: string[] = [];
  readonly watches: WatchManager = new WatchManager();
  readonly requests: WatchRequests;
  readonly client: Client;
  readonly #database = new Database({ extendedTypesEnabled: true, digestEnabled: true }, { emit() {} });
  #zxid = 0;

  constructor() {
    this.requests = new WatchRequests(this.watches);
    const onWatchEvent = ({ type, path }: WatchEvent): void => void this.events.push(`${NAMES[type]} ${path}`);
    this.client = { onWatchEvent, isOpen: true } as Partial<Client> as Client;
    this.create('/a');
  }

  create(path: string): void {
    this.#apply({ type: OpCode.create, path, data: null, acl: OPEN_ACL, isEphemeral: false, parentCversion: 1 });
  }

  set(path: string, version: number): void {
    this.#apply({ type: OpCode.setData, path, data: null, version });
  }

  delete(path: string): void {
    this.#apply({ type: OpCode.delete, path });
  }

  get lastZxid(): number {
    return this.#zxid;
  }

  /** setWatches2 of a client that has seen everything up to `relativeZxid`; default: everything. */
  rearm(lists: WatchLists, relativeZxid: number = this.#zxid): void {
    const { tree } = this.#database;
    const access = new ReadAccess(tree, new Permission(PLAIN_AUTHENTICATOR, false));
    const restoration = new WatchRestoration(
      {
        op: OpCode.setWatches2,
        relativeZxid: relativeZxid as Zxid,
        dataWatches: lists.data ?? [],
        existWatches: lists.exist ?? [],
        childWatches: lists.child ?? [],
        persistentWatches: lists.persistent ?? [],
        persistentRecursiveWatches: lists.recursive ?? [],
      },
      this.client,
      { tree, watches: this.watches, access, work: new WorkMeter() },
    );
    while (!restoration.advance());
  }

  /** Every change that could fire a watch on `/a`. */
  live(): readonly string[] {
    this.events.length = 0;
    this.set('/a', 1);
    this.create('/a/b');
    this.set('/a/b', 1);
    this.delete('/a/b');
    this.delete('/a');
    this.create('/a');
    return this.events;
  }

  #apply(txn: Txn): void {
    const zxid = ++this.#zxid as Zxid;
    this.#database.apply({ sessionId: 7n, cxid: 0, zxid, time: zxid }, txn, this.watches);
  }
}

const OF_PERSISTENT = [
  'nodeDataChanged /a',
  'nodeChildrenChanged /a',
  'nodeChildrenChanged /a',
  'nodeDeleted /a',
  'nodeCreated /a',
];
const OF_RECURSIVE = [
  'nodeDataChanged /a',
  'nodeCreated /a/b',
  'nodeDataChanged /a/b',
  'nodeDeleted /a/b',
  'nodeDeleted /a',
  'nodeCreated /a',
];

describe('setWatches2', () => {
  it.each([
    ['persistent', { persistent: ['/a'] }, persistent, WatcherType.persistent, OF_PERSISTENT],
    ['recursive', { recursive: ['/a'] }, persistentRecursive, WatcherType.persistentRecursive, OF_RECURSIVE],
  ] as const)(
    'arms a %s watch as addWatch does: it fires for the same, again and again, and is removed as a whole',
    (...row) => {
      const [, lists, mode, watcherType, due] = row;
      const added = new Bench();
      added.requests.change({ op: OpCode.addWatch, path: '/a', mode }, added.client);
      expect(added.live()).toEqual(due);

      const rearmed = new Bench();
      rearmed.rearm(lists);
      expect(rearmed.events).toEqual([]);
      expect(rearmed.live()).toEqual(due);
      expect(rearmed.live()).toEqual(due);
      expect(rearmed.watches.has('/a', rearmed.client, watcherType)).toBe(true);
      rearmed.requests.change({ op: OpCode.removeWatches, path: '/a', watcherType }, rearmed.client);
      expect(rearmed.live()).toEqual([]);
      expect(rearmed.watches.data.count + rearmed.watches.child.count).toBe(0);
    },
  );
});

describe('setWatches of one-shot watches', () => {
  const away = {
    'nothing happens': (): void => {},
    'its data change': (bench: Bench): void => bench.set('/a', 1),
    'a child comes': (bench: Bench): void => bench.create('/a/b'),
    'it goes': (bench: Bench): void => bench.delete('/a'),
  } as const;

  it.each([
    ['data', 'nothing happens', []],
    ['data', 'its data change', ['nodeDataChanged /a']],
    ['data', 'a child comes', []],
    ['data', 'it goes', ['nodeDeleted /a']],
    ['child', 'nothing happens', []],
    ['child', 'its data change', []],
    ['child', 'a child comes', ['nodeChildrenChanged /a']],
    ['child', 'it goes', ['nodeDeleted /a']],
  ] as const)('a %s watch, when %s meanwhile', (kind, what, expected) => {
    const bench = new Bench();
    const seen = bench.lastZxid;
    away[what](bench);
    bench.rearm({ [kind]: ['/a'] }, seen);
    expect(bench.events).toEqual(expected);
    const { count } = kind === 'data' ? bench.watches.data : bench.watches.child;
    expect(count).toBe(expected.length === 0 ? 1 : 0);
  });

  it('a watch of exists, where there was nothing, fires at once if the znode exists now, otherwise it is set', () => {
    const bench = new Bench();
    bench.rearm({ exist: ['/a', '/b'] });
    expect(bench.events).toEqual(['nodeCreated /a']);
    bench.create('/b');
    expect(bench.events).toEqual(['nodeCreated /a', 'nodeCreated /b']);
  });
});
