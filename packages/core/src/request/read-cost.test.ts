/** A read is charged for what it visits and copies. A new operation does not compile until its cost is listed here. */
import {
  type Acl,
  AddWatchMode,
  JuteWriter,
  OPEN_ACL,
  OpCode,
  type ReadRequest,
  type Txn,
  WatcherType,
  type Zxid,
} from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { Meters } from '../base/meters/meters.ts';
import { PLAIN_AUTHENTICATOR } from '../testing/plain-authenticator.ts';
import { DataTree, SILENT_EVENTS } from '../tree/data-tree.ts';
import { WatchManager } from '../watch/watch-manager.ts';
import type { Client, ReplyOutput } from './client.ts';
import { NO_ROOM } from './long-read-limiter.ts';
import { Permission } from './permission.ts';
import { Reads } from './read.ts';
import { WorkMeter } from './work-meter.ts';

const CHILDREN = 900;
const DATA_BYTES = 64 * 1024;
const ENTRIES = 200;
const IDENTITIES = 50;
const EPHEMERALS = 300;
const PATHS = Array.from({ length: 100 }, (_, i) => `/big/${i}`);
const LISTS = {
  relativeZxid: 2 ** 40,
  dataWatches: PATHS,
  existWatches: [],
  childWatches: [],
  persistentWatches: [],
  persistentRecursiveWatches: [],
};

/** A large read of each kind, and its minimum cost in units. */
const COSTS: { readonly [Op in ReadRequest['op']]: readonly [ReadRequest & { readonly op: Op }, number] } = {
  [OpCode.exists]: [{ op: OpCode.exists, path: '/big', watch: true }, 0],
  [OpCode.getData]: [{ op: OpCode.getData, path: '/big', watch: false }, DATA_BYTES >> 8],
  [OpCode.getACL]: [{ op: OpCode.getACL, path: '/listed' }, ENTRIES],
  [OpCode.getChildren]: [{ op: OpCode.getChildren, path: '/big', watch: false }, CHILDREN],
  [OpCode.getChildren2]: [{ op: OpCode.getChildren2, path: '/big', watch: false }, CHILDREN],
  [OpCode.getAllChildrenNumber]: [{ op: OpCode.getAllChildrenNumber, path: '/big' }, CHILDREN],
  [OpCode.getEphemerals]: [{ op: OpCode.getEphemerals, prefix: null }, EPHEMERALS],
  [OpCode.multiRead]: [{ op: OpCode.multiRead, ops: [{ op: OpCode.getChildren, path: '/big' }] }, CHILDREN],
  [OpCode.setWatches]: [{ op: OpCode.setWatches, ...LISTS }, PATHS.length],
  [OpCode.setWatches2]: [{ op: OpCode.setWatches2, ...LISTS }, PATHS.length],
  [OpCode.addWatch]: [{ op: OpCode.addWatch, path: '/big', mode: AddWatchMode.persistentRecursive }, 0],
  [OpCode.checkWatches]: [{ op: OpCode.checkWatches, path: '/big', watcherType: WatcherType.any }, 0],
  [OpCode.removeWatches]: [{ op: OpCode.removeWatches, path: '/big', watcherType: WatcherType.any }, 0],
  [OpCode.whoAmI]: [{ op: OpCode.whoAmI }, IDENTITIES],
};

test.each(Object.entries(OpCode).filter(([, op]) => op in COSTS))('%s is charged for what it reads', (_name, op) => {
  const [request, unitsMin] = COSTS[op as ReadRequest['op']];
  const work = new WorkMeter();
  const reads = makeReads(work);
  const long = reads.answer(makeClient(), 1, request, 0, null);
  if (long !== null && long !== NO_ROOM) while (!long.advance());
  expect(work.charge(0)).toBeGreaterThanOrEqual(unitsMin);
});

function makeReads(work: WorkMeter): Reads {
  const tree = new DataTree({ extendedTypesEnabled: true, digestEnabled: true }, { emit() {} });
  let zxid = 0;
  const apply = (txn: Txn): void => {
    tree.apply({ sessionId: SESSION_ID, cxid: 0, zxid: ++zxid as Zxid, time: zxid }, txn, SILENT_EVENTS);
  };
  const create = (path: string, { data = null, acl = OPEN_ACL, isEphemeral = false }: Partial<Created> = {}): void =>
    apply({ type: OpCode.create, path, data, acl, isEphemeral, parentCversion: -1 });
  create('/big', { data: new Uint8Array(DATA_BYTES) });
  for (let i = 0; i < CHILDREN; i++) create(`/big/${i}`);
  for (let i = 0; i < EPHEMERALS; i++) create(`/mine-${i}`, { isEphemeral: true });
  const entries = Array.from({ length: ENTRIES }, (_, i) => ({ perms: 1, scheme: 'digest', id: `u${i}:x` }));
  create('/listed', { acl: [...OPEN_ACL, ...entries] });
  return new Reads({
    tree,
    watches: new WatchManager(),
    permission: new Permission(PLAIN_AUTHENTICATOR, false, work),
    authenticator: PLAIN_AUTHENTICATOR,
    work,
    meters: new Meters({ monotonicMs: () => 0, wallMs: () => 0 }),
    trace: { emit() {} },
    multiReadBytesMax: 2 ** 24,
  });
}

interface Created {
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly isEphemeral: boolean;
}

function makeClient(): Client {
  const output: ReplyOutput = {
    isTooMuch: false,
    reply() {},
    beginReply: () => new JuteWriter(),
    endReply() {},
    holdEvents() {},
  };
  const identities = Array.from({ length: IDENTITIES }, (_, i) => ({ scheme: 'digest', id: `u${i}:x` }));
  const session = { id: SESSION_ID } as Client['session'];
  return { isOpen: true, identities, session, output } as Partial<Client> as Client;
}

const SESSION_ID = 7n;
