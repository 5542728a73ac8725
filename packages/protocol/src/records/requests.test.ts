import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { type ByteList, bytesOf } from '../testing/byte-list.ts';
import {
  AddWatchMode,
  isClientOp,
  type Request,
  readRequest,
  SpecialXid,
  WatcherType,
  writeRequest,
} from './requests.ts';

/** The fields of each request as the table of op codes lists them, built by hand. */
const REQUESTS: readonly (readonly [string, Request, (list: ByteList) => ByteList])[] = [
  ['exists', { op: 3, path: '/a', watch: true }, (b) => b.text('/a').boolean(true)],
  ['getData', { op: 4, path: '/a', watch: false }, (b) => b.text('/a').boolean(false)],
  ['getChildren', { op: 8, path: '/', watch: true }, (b) => b.text('/').boolean(true)],
  ['getChildren2', { op: 12, path: '', watch: false }, (b) => b.text('').boolean(false)],
  ['getACL', { op: 6, path: '/a' }, (b) => b.text('/a')],
  ['sync', { op: 9, path: '/a' }, (b) => b.text('/a')],
  ['getAllChildrenNumber', { op: 104, path: '/a' }, (b) => b.text('/a')],
  ['getEphemerals', { op: 103, prefix: '/a' }, (b) => b.text('/a')],
  ['getEphemerals of every path', { op: 103, prefix: null }, (b) => b.text(null)],
  [
    'setWatches',
    {
      op: 101,
      relativeZxid: 0x100000007,
      dataWatches: ['/d1', '/d2'],
      existWatches: [],
      childWatches: ['/c'],
      persistentWatches: [],
      persistentRecursiveWatches: [],
    },
    (b) => b.long(0x100000007).texts('/d1', '/d2').texts().texts('/c'),
  ],
  [
    'setWatches2',
    {
      op: 105,
      relativeZxid: -1,
      dataWatches: [],
      existWatches: ['/e'],
      childWatches: [],
      persistentWatches: ['/p'],
      persistentRecursiveWatches: ['/r', '/s'],
    },
    (b) => b.long(-1).texts().texts('/e').texts().texts('/p').texts('/r', '/s'),
  ],
  ['addWatch', { op: 106, path: '/a', mode: AddWatchMode.persistentRecursive }, (b) => b.text('/a').int(1)],
  ['checkWatches', { op: 17, path: '/a', watcherType: WatcherType.any }, (b) => b.text('/a').int(3)],
  ['removeWatches', { op: 18, path: '/a', watcherType: 77 }, (b) => b.text('/a').int(77)],
  [
    'reconfig',
    { op: 16, joiningServers: 'server.1=a', leavingServers: null, newMembers: '', currentConfigId: -1 },
    (b) => b.text('server.1=a').text(null).text('').long(-1),
  ],
  [
    'auth',
    { op: 100, scheme: 'digest', auth: Uint8Array.from(Buffer.from('ann:secret')) },
    (b) => b.int(0).text('digest').buffer(Buffer.from('ann:secret')),
  ],
  ['sasl', { op: 102, token: Uint8Array.of(1) }, (b) => b.buffer([1])],
  ['sasl without a token', { op: 102, token: null }, (b) => b.buffer(null)],
  ['ping', { op: 11 }, (b) => b],
  ['whoAmI', { op: 107 }, (b) => b],
  ['closeSession', { op: -11 }, (b) => b],
];

describe.each(REQUESTS)('the record of %s', (_name, request, build) => {
  const bytes = bytesOf(build);

  test('is read as its fields, and bytes behind it are ignored', () => {
    expect(readRequest(request.op, new JuteReader(bytes))).toEqual(request);
    expect(readRequest(request.op, new JuteReader(bytesOf((b) => b.raw(bytes).int(-1))))).toEqual(request);
  });

  test('is written field by field', () => {
    const writer = new JuteWriter(1);
    writeRequest(writer, request);
    expect(writer.toBytes()).toEqual(bytes);
  });

  test('is refused when it ends early', () => {
    for (let length = 0; length < bytes.length; length++) {
      expect(readRequest(request.op, new JuteReader(bytes.subarray(0, length))), `${length} bytes`).toBeNull();
    }
  });
});

test.each(REQUESTS.flatMap(([name, request, build]) => ('path' in request ? [{ name, request, build }] : [])))(
  'a null path is refused in the record of $name',
  ({ request: { op, path }, build }) => {
    const rest = bytesOf(build).subarray(4 + path.length);
    const bytes = bytesOf((b) => b.text(null).raw(rest));
    expect(readRequest(op, new JuteReader(bytes))).toBeNull();
  },
);

test('a watch list may be null but not hold a null', () => {
  const nothing = bytesOf((b) => b.long(0).int(-1).int(-1).int(-1));
  expect(readRequest(OpCode.setWatches, new JuteReader(nothing))).toMatchObject({ dataWatches: [], childWatches: [] });
  const hole = bytesOf((b) => b.long(0).texts('/a', null).texts().texts());
  expect(readRequest(OpCode.setWatches, new JuteReader(hole))).toBeNull();
});

test('a scheme and auth data may be null: the authentication decides about that', () => {
  const bytes = bytesOf((b) => b.int(0).text(null).buffer(null));
  expect(readRequest(OpCode.auth, new JuteReader(bytes))).toEqual({ op: 100, scheme: null, auth: null });
});

test('a relative zxid beyond the exact numbers is later than every zxid', () => {
  const bytes = bytesOf((b) =>
    b
      .long(2n ** 63n - 1n)
      .texts('/a')
      .texts()
      .texts(),
  );
  expect(readRequest(OpCode.setWatches, new JuteReader(bytes))).toMatchObject({
    relativeZxid: Number.MAX_SAFE_INTEGER,
    dataWatches: ['/a'],
  });
});

test('only operations that Apache serves to clients may be sent by one', () => {
  const served = [];
  for (let op = -200; op < 200; op++) if (isClientOp(op)) served.push(op);
  const opsOfTheTable = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16, 17, 18, 19, 21, 22];
  expect(served).toEqual([-11, ...opsOfTheTable, 100, 101, 102, 103, 104, 105, 106, 107]);
});

test('every other operation has no record', () => {
  const around = Array.from({ length: 400 }, (_, i) => i - 200);
  for (const op of [...around, 2 ** 31 - 1, -(2 ** 31)]) {
    if (!isClientOp(op)) expect(readRequest(op, new JuteReader(new Uint8Array(64))), `op ${op}`).toBeNull();
  }
});

test('each operation that a client may send has its bytes built by hand in a test', () => {
  const { create, create2, createContainer, createTTL, delete: deletion, setData, setACL, multi, multiRead } = OpCode;
  // In `writes.test.ts` and `multi.test.ts`.
  const others = [create, create2, createContainer, createTTL, deletion, setData, setACL, multi, multiRead];
  const built = new Set<number>([...REQUESTS.map(([, { op }]) => op), ...others]);
  expect(Object.entries(OpCode).filter(([, op]) => isClientOp(op) && !built.has(op))).toEqual([]);
});

test('the numbers of modes, types and special xids are those of the protocol', () => {
  expect(AddWatchMode).toEqual({ persistent: 0, persistentRecursive: 1 });
  expect(WatcherType).toEqual({ children: 1, data: 2, any: 3, persistent: 4, persistentRecursive: 5 });
  expect(SpecialXid).toEqual({ notification: -1, ping: -2, auth: -4, setWatches: -8 });
});
