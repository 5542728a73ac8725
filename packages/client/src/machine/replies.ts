import {
  type Acl,
  type ClientInfo,
  type ClientOp,
  EMPTY_BYTES,
  type JuteReader,
  OpCode,
  type Request,
  readAclList,
} from '@meerkat/protocol';
import { Stat } from './stat.ts';

/*
 * Readers of the record after a ReplyHeader. A reader is chosen when the request is created and kept in its `Call`:
 * there is no lookup when the reply arrives. Check `reader.failed` afterwards.
 */
export type ReplyReader = (reader: JuteReader) => unknown;

export interface Created {
  /** With the sequence number that the server has appended, if requested. */
  readonly path: string;
  readonly stat: Stat;
}

/** The data and Stat of a znode. */
export interface Znode<T = Uint8Array> {
  readonly data: T;
  readonly stat: Stat;
}

export interface Children {
  /** Names, not paths, in no particular order. */
  readonly children: readonly string[];
  readonly stat: Stat;
}

export interface AclOfZnode {
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

/** The result of one operation of a multi or multiRead. */
export type MultiResult =
  | {
      readonly ok: true;
      /** The op code of the server's answer. */
      readonly op: number;
      readonly path: string | null;
      readonly stat: Stat | null;
      readonly data: Uint8Array | null;
      readonly children: readonly string[] | null;
    }
  | { readonly ok: false; readonly code: number };

export const readNothing: ReplyReader = () => null;

const readStatReply: ReplyReader = (reader): Stat => new Stat(reader);

/** No data reads as empty. */
export const readZnode: ReplyReader = (reader): Znode => {
  const data = copyData(reader.buffer());
  return { data: data ?? EMPTY_BYTES, stat: new Stat(reader) };
};

/** No data reads as null, which ZooKeeper distinguishes from empty data. */
const readNullableZnode: ReplyReader = (reader): Znode<Uint8Array | null> => {
  const data = copyData(reader.buffer());
  return { data, stat: new Stat(reader) };
};

const readChildren: ReplyReader = (reader): Children => ({
  children: readNames(reader),
  stat: new Stat(reader),
});

const readNamesReply: ReplyReader = (reader): readonly string[] => readNames(reader);

const readCreated: ReplyReader = (reader): Created => ({
  path: reader.ustring() ?? '',
  stat: new Stat(reader),
});

/** The reply to a plain create is only the path. */
const readCreatedPath: ReplyReader = (reader) => ({ path: reader.ustring() ?? '', stat: null });

const readAclReply: ReplyReader = (reader): AclOfZnode => ({
  acl: readAclList(reader),
  stat: new Stat(reader),
});

const readCount: ReplyReader = (reader): number => reader.int();

const readClientInfos: ReplyReader = (reader): readonly ClientInfo[] => {
  const count = reader.vectorLength(8);
  const infos: ClientInfo[] = [];
  for (let i = 0; i < count && !reader.failed; i++) {
    infos.push({ scheme: reader.ustring() ?? '', user: reader.ustring() ?? '' });
  }
  return infos;
};

/** `(MultiHeader record)* MultiHeader(-1, true, -1)`: see the protocol's table of results. */
const readMultiResults: ReplyReader = (reader): readonly MultiResult[] => {
  const results: MultiResult[] = [];
  for (;;) {
    const op = reader.int();
    const isDone = reader.boolean();
    reader.int();
    if (reader.failed || isDone) return results;
    results.push(readMultiResult(op, reader));
  }
};

function readMultiResult(op: number, reader: JuteReader): MultiResult {
  switch (op) {
    case OpCode.error:
      return { ok: false, code: reader.int() };
    case OpCode.create:
      return { ok: true, op, path: reader.ustring(), stat: null, data: null, children: null };
    case OpCode.create2:
      return { ok: true, op, path: reader.ustring(), stat: new Stat(reader), data: null, children: null };
    case OpCode.setData:
      return { ok: true, op, path: null, stat: new Stat(reader), data: null, children: null };
    case OpCode.getData: {
      const data = copyData(reader.buffer());
      return { ok: true, op, path: null, stat: new Stat(reader), data, children: null };
    }
    case OpCode.getChildren:
      return { ok: true, op, path: null, stat: null, data: null, children: readNames(reader) };
    case OpCode.delete:
    case OpCode.check:
      return { ok: true, op, path: null, stat: null, data: null, children: null };
    default:
      reader.failed = true;
      return { ok: true, op, path: null, stat: null, data: null, children: null };
  }
}

/** The client's properties of an operation, besides the form of its request. */
interface Operation {
  readonly read: ReplyReader;
  /** True when it is idempotent, unnoticeably for any client. */
  readonly isRepeatable: boolean;
}

const OPERATIONS: { readonly [Op in ClientOp]: Operation } = {
  [OpCode.exists]: { read: readStatReply, isRepeatable: true },
  [OpCode.getData]: { read: readNullableZnode, isRepeatable: true },
  [OpCode.getChildren]: { read: readNamesReply, isRepeatable: true },
  [OpCode.getChildren2]: { read: readChildren, isRepeatable: true },
  [OpCode.getACL]: { read: readAclReply, isRepeatable: true },
  [OpCode.getAllChildrenNumber]: { read: readCount, isRepeatable: true },
  [OpCode.getEphemerals]: { read: readNamesReply, isRepeatable: true },
  [OpCode.multiRead]: { read: readMultiResults, isRepeatable: true },
  [OpCode.sync]: { read: readNothing, isRepeatable: true },
  [OpCode.whoAmI]: { read: readClientInfos, isRepeatable: true },
  [OpCode.addWatch]: { read: readNothing, isRepeatable: true },
  [OpCode.checkWatches]: { read: readNothing, isRepeatable: true },
  [OpCode.removeWatches]: { read: readNothing, isRepeatable: false },
  [OpCode.setWatches]: { read: readNothing, isRepeatable: false },
  [OpCode.setWatches2]: { read: readNothing, isRepeatable: false },
  [OpCode.create]: { read: readCreatedPath, isRepeatable: false },
  [OpCode.create2]: { read: readCreated, isRepeatable: false },
  [OpCode.createContainer]: { read: readCreated, isRepeatable: false },
  [OpCode.createTTL]: { read: readCreated, isRepeatable: false },
  [OpCode.delete]: { read: readNothing, isRepeatable: false },
  [OpCode.setData]: { read: readStatReply, isRepeatable: false },
  [OpCode.setACL]: { read: readStatReply, isRepeatable: false },
  [OpCode.multi]: { read: readMultiResults, isRepeatable: false },
  [OpCode.reconfig]: { read: readNullableZnode, isRepeatable: false },
  [OpCode.auth]: { read: readNothing, isRepeatable: false },
  [OpCode.sasl]: { read: readNothing, isRepeatable: false },
  [OpCode.ping]: { read: readNothing, isRepeatable: false },
  [OpCode.closeSession]: { read: readNothing, isRepeatable: false },
};

/** The reader for the reply to a request. */
export function replyReaderOf({ op }: Request): ReplyReader {
  return OPERATIONS[op].read;
}

/** See `Operation`. */
export function isRepeatable({ op }: Request): boolean {
  return OPERATIONS[op].isRepeatable;
}

function readNames(reader: JuteReader): readonly string[] {
  const count = reader.vectorLength(4);
  const names: string[] = [];
  for (let i = 0; i < count && !reader.failed; i++) names.push(reader.ustring() ?? '');
  return names;
}

/*
 * The bytes of a reply are in a chunk of up to 64 KiB that the transport received. Data passed to callers is copied, so
 * that a small znode does not retain the chunk; small data into slabs, because a separate array buffer costs more than
 * its bytes.
 */
const SLAB_BYTES = 8192;
const SLAB_DATA_BYTES_MAX = 1024;
let slab = new Uint8Array(SLAB_BYTES);
let slabUsed = 0;

function copyData(view: Uint8Array | null): Uint8Array | null {
  if (view === null) return null;
  const length = view.length;
  if (length === 0) return EMPTY_BYTES;
  if (length > SLAB_DATA_BYTES_MAX) return view.slice();
  if (slabUsed + length > SLAB_BYTES) {
    slab = new Uint8Array(SLAB_BYTES);
    slabUsed = 0;
  }
  const copy = slab.subarray(slabUsed, slabUsed + length);
  copy.set(view);
  slabUsed += length;
  return copy;
}
