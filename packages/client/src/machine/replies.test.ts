import { JuteReader, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { isRepeatable, type MultiResult, replyReaderOf, type Znode } from './replies.ts';
import { Bytes } from './testing/scripted-server.ts';

const GET: Request = { op: OpCode.getData, path: '/a', watch: false };
const CHILDREN2: Request = { op: OpCode.getChildren2, path: '/a', watch: false };
const STAT = expect.objectContaining({
  czxid: 1n,
  mzxid: 8n,
  ctime: 5,
  mtime: 6,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 2,
  numChildren: 0,
  pzxid: 7n,
});

function createOf(op: 1 | 15 | 19 | 21): Request {
  return { op, path: '/a', data: new Uint8Array(0), acl: [], flags: 0, ttl: -1 };
}

function namesOf(...names: string[]): Bytes {
  const body = new Bytes().int(names.length);
  for (const name of names) body.text(name);
  return body;
}

/** The record of a reply, as its request's reader decodes it. */
function read<T>(request: Request, record: Uint8Array): T {
  const reader = new JuteReader(record);
  const result = replyReaderOf(request)(reader) as T;
  expect([reader.failed, reader.remaining]).toEqual([false, 0]);
  return result;
}

test('the data of each reply is a copy of its own, however much is kept', () => {
  // More than fits into one slab, and some that is too long for any.
  const lengths = Array.from({ length: 100 }, (_, i) => (i * 97) % 1030);
  const kept = lengths.map((length, i) => {
    const expected = new Uint8Array(length).fill(i);
    const chunk = new Uint8Array(new Bytes().buffer(expected).stat(8).list);
    const { data } = read<Znode>(GET, chunk);
    // Nothing of the chunk is shared.
    chunk.fill(0xff);
    return { data, expected };
  });
  for (const { data, expected } of kept) expect(data).toEqual(expected);
});

test.each<[string, Request, Bytes, unknown]>([
  ['create', createOf(OpCode.create), new Bytes().text('/a1'), { path: '/a1', stat: null }],
  ['create2', createOf(OpCode.create2), new Bytes().text('/a1').stat(8), { path: '/a1', stat: STAT }],
  ['createContainer', createOf(OpCode.createContainer), new Bytes().text('/a').stat(8), { path: '/a', stat: STAT }],
  ['createTTL', createOf(OpCode.createTTL), new Bytes().text('/a').stat(8), { path: '/a', stat: STAT }],
  ['exists', { op: OpCode.exists, path: '/a', watch: false }, new Bytes().stat(8), STAT],
  ['getData', GET, new Bytes().text('x').stat(8), { data: new Uint8Array([0x78]), stat: STAT }],
  ['getData of no data', GET, new Bytes().int(-1).stat(8), { data: null, stat: STAT }],
  ['getData of empty data', GET, new Bytes().int(0).stat(8), { data: new Uint8Array(0), stat: STAT }],
  ['getChildren', { op: OpCode.getChildren, path: '/a', watch: false }, namesOf('x', 'y'), ['x', 'y']],
  ['getChildren2', CHILDREN2, namesOf('x').stat(8), { children: ['x'], stat: STAT }],
  ['getEphemerals', { op: OpCode.getEphemerals, prefix: '/' }, namesOf('/x', '/y'), ['/x', '/y']],
  ['getAllChildrenNumber', { op: OpCode.getAllChildrenNumber, path: '/a' }, new Bytes().int(7), 7],
  [
    'getACL',
    { op: OpCode.getACL, path: '/a' },
    new Bytes().int(1).int(31).text('world').text('anyone').stat(8),
    { acl: [{ perms: 31, scheme: 'world', id: 'anyone' }], stat: STAT },
  ],
  [
    'whoAmI',
    { op: OpCode.whoAmI },
    new Bytes().int(2).text('ip').text('127.0.0.1').text('digest').text('ann'),
    [
      { scheme: 'ip', user: '127.0.0.1' },
      { scheme: 'digest', user: 'ann' },
    ],
  ],
])('the reply to %s is read with all of its fields', (_, request, record, result) => {
  expect(read(request, new Uint8Array(record.list))).toEqual(result);
});

describe('the results of', () => {
  const header = (body: Bytes, op: number, code = 0): Bytes => body.int(op).byte(0).int(code);
  const end = (body: Bytes): Uint8Array => new Uint8Array(body.int(-1).byte(1).int(-1).list);
  const done = { ok: true, path: null, stat: null, data: null, children: null };

  test('a multi have the form of their operation', () => {
    const body = new Bytes();
    header(body, OpCode.create).text('/a');
    header(body, OpCode.create2).text('/b').stat(8);
    header(body, OpCode.setData).stat(8);
    header(body, OpCode.delete);
    header(body, OpCode.check);
    const results = read<readonly MultiResult[]>({ op: OpCode.multi, ops: [] }, end(body));
    expect(results).toEqual([
      { ...done, op: OpCode.create, path: '/a' },
      { ...done, op: OpCode.create2, path: '/b', stat: STAT },
      { ...done, op: OpCode.setData, stat: STAT },
      { ...done, op: OpCode.delete },
      { ...done, op: OpCode.check },
    ]);
  });

  test('a multiRead have the form of their operation, or a code of their own', () => {
    const body = new Bytes();
    header(body, OpCode.getData).text('x').stat(8);
    header(body, OpCode.error, -101).int(-101);
    header(body, OpCode.getChildren).int(2).text('one').text('two');
    const results = read<readonly MultiResult[]>({ op: OpCode.multiRead, ops: [] }, end(body));
    expect(results).toEqual([
      { ...done, op: OpCode.getData, stat: STAT, data: new TextEncoder().encode('x') },
      { ok: false, code: -101 },
      { ...done, op: OpCode.getChildren, children: ['one', 'two'] },
    ]);
  });
});

test('no request that changes anything is sent again on the next connection', () => {
  const { exists, getData, getChildren, getChildren2, getACL, getAllChildrenNumber, getEphemerals } = OpCode;
  const { multiRead, sync, whoAmI, addWatch, checkWatches } = OpCode;
  const reads = [exists, getData, getChildren, getChildren2, getACL, getAllChildrenNumber, getEphemerals, multiRead];
  const again = [...reads, sync, whoAmI, addWatch, checkWatches];
  const { create, create2, createContainer, createTTL, delete: deletion, setData, setACL, multi, reconfig } = OpCode;
  const { auth, sasl, closeSession, removeWatches } = OpCode;
  const writes = [create, create2, createContainer, createTTL, deletion, setData, setACL, multi, reconfig];
  const all = [...again, ...writes, auth, sasl, closeSession, removeWatches];
  expect(all.filter((op) => isRepeatable({ op } as Request))).toEqual(again);
});
