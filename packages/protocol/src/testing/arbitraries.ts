/** Values of every record for property tests, which our reader must return exactly as written. */
import fc from 'fast-check';
import { OpCode } from '../op-code.ts';
import type { Acl } from '../records/data.ts';
import type { MultiOp } from '../records/multi.ts';
import type { Request } from '../records/requests.ts';
import type { MultiSubTxn, Txn, TxnHeader } from '../records/txn.ts';
import type { CreateRequest } from '../records/writes.ts';
import { MAX_COUNTER, MAX_EPOCH, makeZxid } from '../zxid.ts';

/** Code points without lone surrogates, which UTF-8 cannot hold. */
const text = fc.string({ unit: 'binary', maxLength: 40 });
const path = fc.oneof(
  text,
  fc.array(fc.constantFrom('a', 'b', 'lock-', '0000000001')).map((names) => `/${names.join('/')}`),
);
const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const long = fc.maxSafeInteger();
const bytes = fc.uint8Array({ maxLength: 200 });
const data = fc.option(bytes);
const session = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const nullableText = fc.option(text);
const aclEntry: fc.Arbitrary<Acl> = fc.record({ perms: int, scheme: nullableText, id: nullableText });
const openAcl: Acl = { perms: 31, scheme: 'world', id: 'anyone' };
const acl = fc.array(fc.oneof(fc.constant(openAcl), aclEntry), { maxLength: 4 });
const paths = fc.array(path, { maxLength: 5 });

const create: fc.Arbitrary<CreateRequest> = fc.oneof(
  fc.record({
    op: fc.constantFrom(OpCode.create, OpCode.create2, OpCode.createContainer),
    path,
    data,
    acl,
    flags: int,
    ttl: fc.constant(-1),
  }),
  fc.record({ op: fc.constant(OpCode.createTTL), path, data, acl, flags: int, ttl: long }),
);

/** Creates whose type inside a multi matches their flags. */
const createInMulti: fc.Arbitrary<CreateRequest> = fc.oneof(
  fc.record({
    op: fc.constantFrom(OpCode.create, OpCode.create2, OpCode.createContainer),
    path,
    data,
    acl,
    flags: fc.integer({ min: 0, max: 3 }),
    ttl: fc.constant(-1),
  }),
  fc.record({ op: fc.constant(OpCode.createTTL), path, data, acl, flags: fc.constantFrom(5, 6), ttl: long }),
);
const deletion = fc.record({ op: fc.constant(OpCode.delete), path, version: int });
const setData = fc.record({ op: fc.constant(OpCode.setData), path, data, version: int });

const multiOp: fc.Arbitrary<MultiOp> = fc.oneof(
  createInMulti,
  deletion,
  setData,
  fc.record({ op: fc.constant(OpCode.check), path, version: int }),
);
const multiReadOp = fc.record({ op: fc.constantFrom(OpCode.getData, OpCode.getChildren), path });

export const anyRequest: fc.Arbitrary<Request> = fc.oneof(
  create,
  deletion,
  setData,
  fc.record({ op: fc.constant(OpCode.setACL), path, acl, version: int }),
  fc.record({
    op: fc.constantFrom(OpCode.exists, OpCode.getData, OpCode.getChildren, OpCode.getChildren2),
    path,
    watch: fc.boolean(),
  }),
  fc.record({ op: fc.constantFrom(OpCode.getACL, OpCode.sync, OpCode.getAllChildrenNumber), path }),
  fc.record({ op: fc.constant(OpCode.getEphemerals), prefix: nullableText }),
  fc.record({
    op: fc.constant(OpCode.setWatches),
    relativeZxid: long,
    dataWatches: paths,
    existWatches: paths,
    childWatches: paths,
    persistentWatches: fc.constant([]),
    persistentRecursiveWatches: fc.constant([]),
  }),
  fc.record({
    op: fc.constant(OpCode.setWatches2),
    relativeZxid: long,
    dataWatches: paths,
    existWatches: paths,
    childWatches: paths,
    persistentWatches: paths,
    persistentRecursiveWatches: paths,
  }),
  fc.record({ op: fc.constant(OpCode.addWatch), path, mode: int }),
  fc.record({ op: fc.constantFrom(OpCode.checkWatches, OpCode.removeWatches), path, watcherType: int }),
  fc.record({
    op: fc.constant(OpCode.reconfig),
    joiningServers: nullableText,
    leavingServers: nullableText,
    newMembers: nullableText,
    currentConfigId: long,
  }),
  fc.record({ op: fc.constant(OpCode.auth), scheme: text, auth: bytes }),
  fc.record({ op: fc.constant(OpCode.sasl), token: data }),
  fc.record({ op: fc.constantFrom(OpCode.ping, OpCode.whoAmI, OpCode.closeSession) }),
  fc.record({ op: fc.constant(OpCode.multi), ops: fc.array(multiOp, { maxLength: 5 }) }),
  fc.record({ op: fc.constant(OpCode.multiRead), ops: fc.array(multiReadOp, { maxLength: 5 }) }),
);

const subTxn: fc.Arbitrary<MultiSubTxn> = fc.oneof(
  fc.record({
    type: fc.constantFrom(OpCode.create, OpCode.create2),
    path,
    data,
    acl,
    isEphemeral: fc.boolean(),
    parentCversion: int,
  }),
  fc.record({ type: fc.constant(OpCode.createContainer), path, data, acl, parentCversion: int }),
  fc.record({ type: fc.constant(OpCode.createTTL), path, data, acl, parentCversion: int, ttl: long }),
  fc.record({ type: fc.constantFrom(OpCode.delete, OpCode.deleteContainer), path }),
  fc.record({ type: fc.constantFrom(OpCode.setData, OpCode.reconfig), path, data, version: int }),
  fc.record({ type: fc.constant(OpCode.setACL), path, acl, version: int }),
  fc.record({ type: fc.constant(OpCode.check), path, version: int }),
  fc.record({ type: fc.constant(OpCode.error), error: int }),
);

/** A create2 inside a multi is written as a create. */
const multiSubTxn = subTxn.filter(({ type }) => type !== OpCode.create2);

export const anyTxn: fc.Arbitrary<Txn> = fc.oneof(
  { weight: 4, arbitrary: subTxn },
  fc.record({ type: fc.constant(OpCode.createSession), timeoutMs: int }),
  fc.record({ type: fc.constant(OpCode.closeSession), paths }),
  fc.record({ type: fc.constant(OpCode.multi), txns: fc.array(multiSubTxn, { maxLength: 5 }) }),
);

export const anyTxnHeader: fc.Arbitrary<TxnHeader> = fc.record({
  sessionId: session,
  cxid: int,
  zxid: fc
    .tuple(fc.nat(MAX_EPOCH), fc.integer({ min: 0, max: MAX_COUNTER }))
    .map(([epoch, counter]) => makeZxid(epoch, counter)),
  time: long,
});

export const anyTreeDigest: fc.Arbitrary<bigint | null> = fc.option(session);
