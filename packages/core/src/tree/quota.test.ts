import { makeZxid, OPEN_ACL, OpCode, type Txn } from '@meerkat/protocol';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { TraceEvent } from '../base/ports.ts';
import { DataTree, SILENT_EVENTS } from './data-tree.ts';
import { areReadableStats, formatTrack, parseTrack } from './quota.ts';
import { ZnodeTable } from './znode-table.ts';

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
  return new TextDecoder().decode(tree.dataOf(tree.znodes.find(path))!);
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
  it('starts with the current usage and follows every change, without changing version, zxid or digest', () => {
    create('/a', '12345');
    create('/a/b', '123');
    setQuota('/a', 'count=10,bytes=-1');
    const stats = '/zookeeper/quota/a/zookeeper_stats';
    expect(textOf(stats)).toBe('count=2,bytes=8');
    const before = tree.persistedStatOf(tree.znodes.find(stats));
    create('/a/b/c', '1');
    expect(textOf(stats)).toBe('count=3,bytes=9');
    apply({ type: OpCode.setData, path: '/a', data: null, version: 1 });
    expect(textOf(stats)).toBe('count=3,bytes=4');
    apply({ type: OpCode.delete, path: '/a/b/c' });
    create('/ab', 'not below /a');
    expect(textOf(stats)).toBe('count=2,bytes=3');
    expect(tree.persistedStatOf(tree.znodes.find(stats))).toEqual(before);
  });

  it('looks up its znode once, and again after that was deleted', () => {
    create('/a', '');
    setQuota('/a', 'count=10,bytes=-1');
    const stats = '/zookeeper/quota/a/zookeeper_stats';
    const find = vi.spyOn(ZnodeTable.prototype, 'find');
    for (let i = 0; i < 10; i++) create(`/a/${i}`, '');
    expect(find.mock.calls.flat().filter((path) => path === stats).length).toBeLessThanOrEqual(1);
    find.mockRestore();
    expect(textOf(stats)).toBe('count=11,bytes=0');
    apply({ type: OpCode.delete, path: stats });
    create('/a/takes its number', '');
    create('/a/x', '');
    create(stats, '');
    expect(textOf(stats)).toBe('count=13,bytes=0');
    create('/a/y', '12');
    expect(textOf(stats)).toBe('count=14,bytes=2');
    expect(textOf('/a/takes its number')).toBe('');
  });

  it('of the quota znodes themselves is counted too, until they are deleted', () => {
    setQuota('/zookeeper', 'count=100,bytes=-1');
    const stats = '/zookeeper/quota/zookeeper/zookeeper_stats';
    apply({ type: OpCode.delete, path: stats });
    create('/takes its number', '1');
    create('/zookeeper/x', '');
    expect(textOf('/takes its number')).toBe('1');
  });

  it('is counted at the deepest path with a quota only', () => {
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

  it('of the root is counted when its znode is created, and not updated', () => {
    create('/a', '12345');
    create('/zookeeper/quota/zookeeper_stats', 'whatever');
    // The root, /zookeeper with its quota and config, /a, and the znode itself with its initial data.
    expect(textOf('/zookeeper/quota/zookeeper_stats')).toBe('count=6,bytes=13');
    create('/b', '1');
    expect(textOf('/zookeeper/quota/zookeeper_stats')).toBe('count=6,bytes=13');
  });

  it('is no longer updated once the limits are deleted', () => {
    create('/a', '');
    setQuota('/a', 'count=1,bytes=-1=;countHardLimit=1');
    apply({ type: OpCode.delete, path: '/zookeeper/quota/a/zookeeper_limits' });
    create('/a/b', '');
    expect(textOf('/zookeeper/quota/a/zookeeper_stats')).toBe('count=1,bytes=0');
    expect(tree.quotas.check('/a/c', 0, 1)).toBe('ok');
  });
});

describe('usage of many znodes', () => {
  const STATS = '/zookeeper/quota/a/zookeeper_stats';

  function createMany(count: number): void {
    create('/a', '');
    for (let i = 0; i < count; i++) create(`/a/${i}`, 'x');
  }

  it('is counted over several turns: until then the quota refuses nothing, afterwards it is exact', () => {
    createMany(10_000);
    setQuota('/a', 'count=-1,bytes=-1=;countHardLimit=1');
    expect(textOf(STATS)).toBe('count=0,bytes=0');
    expect(tree.quotas.check('/a/b', 0, 1)).toBe('ok');
    tree.quotas.advance();
    create('/a/new', '12345');
    apply({ type: OpCode.setData, path: '/a/0', data: null, version: 1 });
    apply({ type: OpCode.delete, path: '/a/9999' });
    expect(tree.quotas.isCounting).toBe(true);
    while (tree.quotas.isCounting) tree.quotas.advance();
    expect(textOf(STATS)).toBe('count=10001,bytes=10003');
    expect(tree.quotas.check('/a/b', 0, 1)).toEqual({ path: '/a', limit: 'count' });
    create('/a/newer', '1');
    expect(textOf(STATS)).toBe('count=10002,bytes=10004');
    expect(tree.state.observers.size).toBe(0);
  });

  it('costs a turn no more when it is requested many times', () => {
    createMany(5000);
    setQuota('/a', 'count=1000000,bytes=-1');
    for (let i = 0; i < 100; i++) {
      apply({ type: OpCode.delete, path: STATS });
      create(STATS, 'count=0,bytes=0');
      setQuota(`/a/${i}`, 'count=1000000,bytes=-1');
    }
    expect(tree.state.observers.size).toBeLessThanOrEqual(1);
    for (let i = 0; i < 4; i++) tree.quotas.advance();
    expect(tree.quotas.isCounting).toBe(false);
    expect(textOf(STATS)).toBe('count=5001,bytes=5000');
    expect(textOf('/zookeeper/quota/a/99/zookeeper_stats')).toBe('count=1,bytes=1');
  });

  it('is what a client writes there meanwhile, and none when it deletes the znode', () => {
    createMany(5000);
    setQuota('/a', 'count=1000000,bytes=-1');
    apply({ type: OpCode.setData, path: STATS, data: new TextEncoder().encode('count=7,bytes=8'), version: 1 });
    expect(tree.quotas.isCounting).toBe(false);
    create('/a/new', '1');
    expect(textOf(STATS)).toBe('count=8,bytes=9');
    apply({ type: OpCode.delete, path: STATS });
    create(STATS, '');
    expect(tree.quotas.isCounting).toBe(true);
    apply({ type: OpCode.delete, path: STATS });
    expect(tree.quotas.isCounting).toBe(false);
    expect(tree.state.observers.size).toBe(0);
  });

  it('is zero once the znode itself is deleted, and that of the next one with its name', () => {
    createMany(5000);
    setQuota('/a', 'count=1000000,bytes=-1');
    for (let i = 0; i < 5000; i++) apply({ type: OpCode.delete, path: `/a/${i}` });
    apply({ type: OpCode.delete, path: '/a' });
    create('/a', '123');
    while (tree.quotas.isCounting) tree.quotas.advance();
    create('/a/b', '1');
    expect(textOf(STATS)).toBe('count=2,bytes=4');
  });

  it('is not that of another znode that reuses its number', () => {
    createMany(5000);
    setQuota('/a', 'count=1000000,bytes=-1');
    for (let i = 0; i < 5000; i++) apply({ type: OpCode.delete, path: `/a/${i}` });
    apply({ type: OpCode.delete, path: '/a' });
    create('/b', '123');
    create('/b/c', '4');
    while (tree.quotas.isCounting) tree.quotas.advance();
    expect(textOf(STATS)).toBe('count=0,bytes=0');
    expect(tree.state.observers.size).toBe(0);
  });

  it('of nested quotas is counted in one pass when a tree is loaded', () => {
    let path = '';
    for (let i = 0; i < 300; i++) {
      path += '/d';
      create(path, 'x');
      setQuota(path, 'count=1000000,bytes=-1');
    }
    for (let i = 0; i < 3000; i++) create(`${path}/${i}`, 'yy');
    tree.quotas.rebuild();
    expect(textOf(`/zookeeper/quota${path}/zookeeper_stats`)).toBe('count=3001,bytes=6001');
    expect(textOf('/zookeeper/quota/d/zookeeper_stats')).toBe('count=3300,bytes=6300');
  });
});

describe('check', () => {
  it('refuses only what exceeds a hard limit', () => {
    create('/a', '12');
    setQuota('/a', 'count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=2');
    expect(tree.quotas.check('/a/b', 8, 1)).toBe('ok');
    expect(tree.quotas.check('/a/b', 9, 1)).toEqual({ path: '/a', limit: 'bytes' });
    create('/a/b', '');
    expect(tree.quotas.check('/a/c', 0, 1)).toEqual({ path: '/a', limit: 'count' });
    expect(tree.quotas.check('/a/b', 8, 0)).toBe('ok');
    expect(tree.quotas.check('/b', 1000, 1)).toBe('ok');
  });

  it('warns about a soft limit once per minute of the tree’s own time', () => {
    create('/a', '');
    setQuota('/a', 'count=1,bytes=-1');
    for (const time of [1000, 2000, 60_999, 61_000]) {
      create(`/at-${time}`, '', time);
      expect(tree.quotas.check('/a/b', 0, 1)).toBe('ok');
    }
    expect(events).toHaveLength(2);
    expect(events[0]).toMatchObject({ kind: 'quota-exceeded', path: '/a', isHard: false });
  });

  it('never applies to the root, and ignores a limit that is not a number', () => {
    create('/zookeeper/quota/zookeeper_limits', 'count=1,bytes=1=;countHardLimit=1');
    create('/zookeeper/quota/zookeeper_stats', '');
    expect(tree.quotas.check('/b', 1000, 1)).toBe('ok');
    setQuota('/x', 'whatever, countHardLimit=many;=;,,');
    expect(tree.quotas.check('/x/b', 1000, 1)).toBe('ok');
  });
});

describe('the text of limits and usage', () => {
  it('is read and written as by Apache, with sorted hard limits after a lone "="', () => {
    const text = 'count=3,bytes=-1=;byteHardLimit=10;countHardLimit=7';
    expect(parseTrack(text)).toEqual({ count: 3, bytes: -1, bytesHard: 10, countHard: 7 });
    expect(formatTrack(parseTrack(text))).toBe(text);
    expect(formatTrack(parseTrack('count=3,bytes=4'))).toBe('count=3,bytes=4');
  });

  it('detects usage that an Apache server cannot read, as that would stop it', () => {
    const stats = '/zookeeper/quota/a/zookeeper_stats';
    const isReadable = (path: string, text: string | null): boolean =>
      areReadableStats(path, text === null ? null : new TextEncoder().encode(text));
    const good = [
      '',
      'count=1,bytes=-2',
      'count=+1;;,bytes=05',
      'count=1',
      'other=7',
      'count=1,bytes=2=;byteHardLimit=3',
    ];
    for (const text of good) expect(isReadable(stats, text), text).toBe(true);
    // Each of these was seen to stop Apache 3.8.0.
    const bad = [
      null,
      'garbage',
      'count',
      'count=x,bytes=y',
      'count=99999999999999999999,bytes=1',
      '=,=',
      'count=,bytes=',
    ];
    for (const text of [...bad, 'count=1,bytes=1=;byteHardLimit=zz', 'count= 1', '=1']) {
      expect(isReadable(stats, text), String(text)).toBe(false);
      for (const path of ['/a', '/a/zookeeper_stats', '/zookeeper/quota/a/zookeeper_limits']) {
        expect(isReadable(path, text)).toBe(true);
      }
    }
  });
});
