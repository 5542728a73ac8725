import { makeZxid, OPEN_ACL, OpCode, type Txn } from '@meerkat/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import type { TraceEvent } from '../ports.ts';
import { DataTree, SILENT_EVENTS } from './data-tree.ts';
import { formatTrack, parseTrack } from './quota.ts';

let tree: DataTree;
let events: TraceEvent[];
let zxid: number;

function apply(txn: Txn, time = 0): void {
  tree.apply({ sessionId: 1n, cxid: 1, zxid: makeZxid(0, ++zxid), time }, txn, SILENT_EVENTS);
}

function create(path: string, text: string, time = 0): void {
  const data = new TextEncoder().encode(text);
  apply({ type: OpCode.create, path, data, acl: OPEN_ACL, isEphemeral: false, parentCversion: -1 }, time);
}

function textOf(path: string): string {
  return new TextDecoder().decode(tree.dataOf(tree.find(path))!);
}

/** As zkCli's setquota does it. */
function setQuota(path: string, limits: string): void {
  for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1)) {
    create(`/zookeeper/quota${path.slice(0, end)}`, '');
  }
  create(`/zookeeper/quota${path}`, '');
  create(`/zookeeper/quota${path}/zookeeper_limits`, limits);
  create(`/zookeeper/quota${path}/zookeeper_stats`, 'count=0,bytes=0');
}

beforeEach(() => {
  events = [];
  zxid = 0;
  tree = new DataTree(
    { extendedTypesEnabled: false, digestEnabled: true },
    { emit: (event) => void events.push(event) },
  );
});

describe('usage', () => {
  it('starts with what is there and follows every change, without version, zxid or digest', () => {
    create('/a', '12345');
    create('/a/b', '123');
    setQuota('/a', 'count=10,bytes=-1');
    const stats = '/zookeeper/quota/a/zookeeper_stats';
    expect(textOf(stats)).toBe('count=2,bytes=8');
    const before = tree.persistedStatOf(tree.find(stats));
    create('/a/b/c', '1');
    expect(textOf(stats)).toBe('count=3,bytes=9');
    apply({ type: OpCode.setData, path: '/a', data: null, version: 1 });
    expect(textOf(stats)).toBe('count=3,bytes=4');
    apply({ type: OpCode.delete, path: '/a/b/c' });
    create('/ab', 'not below /a');
    expect(textOf(stats)).toBe('count=2,bytes=3');
    expect(tree.persistedStatOf(tree.find(stats))).toEqual(before);
  });

  it('is booked at the deepest path with a quota alone', () => {
    create('/a', '');
    create('/a/b', '');
    setQuota('/a', 'count=10,bytes=-1');
    create('/zookeeper/quota/a/b', '');
    create('/zookeeper/quota/a/b/zookeeper_limits', 'count=5,bytes=-1');
    create('/zookeeper/quota/a/b/zookeeper_stats', '');
    create('/a/b/c', '1');
    expect(textOf('/zookeeper/quota/a/zookeeper_stats')).toBe('count=2,bytes=0');
    expect(textOf('/zookeeper/quota/a/b/zookeeper_stats')).toBe('count=2,bytes=1');
  });

  it('is no longer kept once the limits are deleted', () => {
    create('/a', '');
    setQuota('/a', 'count=1,bytes=-1=;countHardLimit=1');
    apply({ type: OpCode.delete, path: '/zookeeper/quota/a/zookeeper_limits' });
    create('/a/b', '');
    expect(textOf('/zookeeper/quota/a/zookeeper_stats')).toBe('count=1,bytes=0');
    expect(tree.quotas.check('/a/c', 0, 1)).toBe('ok');
  });
});

describe('check', () => {
  it('refuses what goes beyond a hard limit, and only that', () => {
    create('/a', '12');
    setQuota('/a', 'count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=2');
    expect(tree.quotas.check('/a/b', 8, 1)).toBe('ok');
    expect(tree.quotas.check('/a/b', 9, 1)).toEqual({ path: '/a', limit: 'bytes' });
    create('/a/b', '');
    expect(tree.quotas.check('/a/c', 0, 1)).toEqual({ path: '/a', limit: 'count' });
    expect(tree.quotas.check('/a/b', 8, 0)).toBe('ok');
    expect(tree.quotas.check('/b', 1000, 1)).toBe('ok');
  });

  it('warns of a soft limit once a minute of the tree’s own time', () => {
    create('/a', '');
    setQuota('/a', 'count=1,bytes=-1');
    for (const time of [1000, 2000, 60_999, 61_000]) {
      create(`/at-${time}`, '', time);
      expect(tree.quotas.check('/a/b', 0, 1)).toBe('ok');
    }
    expect(events).toHaveLength(2);
    expect(events[0]).toMatchObject({ kind: 'quota-exceeded', path: '/a', isHard: false });
  });

  it('never counts for the root, and holds no quota that is not a number', () => {
    create('/zookeeper/quota/zookeeper_limits', 'count=1,bytes=1=;countHardLimit=1');
    create('/zookeeper/quota/zookeeper_stats', '');
    expect(tree.quotas.check('/b', 1000, 1)).toBe('ok');
    setQuota('/x', 'whatever, countHardLimit=many;=;,,');
    expect(tree.quotas.check('/x/b', 1000, 1)).toBe('ok');
  });
});

describe('the text of limits and usage', () => {
  it('is read and written as Apache does it, hard limits sorted behind a lone "="', () => {
    const text = 'count=3,bytes=-1=;byteHardLimit=10;countHardLimit=7';
    expect(parseTrack(text)).toEqual({ count: 3, bytes: -1, bytesHard: 10, countHard: 7 });
    expect(formatTrack(parseTrack(text))).toBe(text);
    expect(formatTrack(parseTrack('count=3,bytes=4'))).toBe('count=3,bytes=4');
  });
});
