import {
  type Acl,
  type ClientInfo,
  EMPTY_BYTES,
  type JuteReader,
  OpCode,
  type Request,
  readAclList,
} from '@meerkat/protocol';
import { Stat } from './stat.ts';

/*
 * What is made of the record behind a ReplyHeader. A reader is chosen when the request is made and kept in its `Call`:
 * nothing is looked up when the reply comes. Check `reader.failed` afterwards.
 */
export type ReplyReader = (reader: JuteReader) => unknown;

export interface Created {
  /** With the sequence number that the server has appended, if it was asked to. */
  readonly path: string;
  readonly stat: Stat;
}

/** A znode: what it holds and what is known about it. */
export interface Znode<T = Uint8Array> {
  readonly data: T;
  readonly stat: Stat;
}

export interface Children {
  /** Names, not paths, in no order. */
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
      /** The op code under which the server answers. */
      readonly op: number;
      readonly path: string | null;
      readonly stat: Stat | null;
      readonly data: Uint8Array | null;
      readonly children: readonly string[] | null;
    }
  | { readonly ok: false; readonly code: number };

export const readNothing: ReplyReader = () => null;

export const readStatReply: ReplyReader = (reader): Stat => new Stat(reader);

/** No data reads as empty. */
export const readZnode: ReplyReader = (reader): Znode => {
  const data = copyData(reader.buffer());
  return { data: data ?? EMPTY_BYTES, stat: new Stat(reader) };
};

/** No data reads as null, which is not the same as empty in ZooKeeper. */
export const readNullableZnode: ReplyReader = (reader): Znode<Uint8Array | null> => {
  const data = copyData(reader.buffer());
  return { data, stat: new Stat(reader) };
};

export const readChildren: ReplyReader = (reader): Children => ({
  children: readNames(reader),
  stat: new Stat(reader),
});

export const readNamesReply: ReplyReader = (reader): readonly string[] => readNames(reader);

export const readCreated: ReplyReader = (reader): Created => ({
  path: reader.ustring() ?? '',
  stat: new Stat(reader),
});

/** The answer to a plain create is the path alone. */
const readCreatedPath: ReplyReader = (reader) => ({ path: reader.ustring() ?? '', stat: null });

export const readAclReply: ReplyReader = (reader): AclOfZnode => ({
  acl: readAclList(reader),
  stat: new Stat(reader),
});

export const readCount: ReplyReader = (reader): number => reader.int();

export const readClientInfos: ReplyReader = (reader): readonly ClientInfo[] => {
  const count = reader.vectorLength(8);
  const infos: ClientInfo[] = [];
  for (let i = 0; i < count && !reader.failed; i++) {
    infos.push({ scheme: reader.ustring() ?? '', user: reader.ustring() ?? '' });
  }
  return infos;
};

/** `(MultiHeader record)* MultiHeader(-1, true, -1)`: see the protocol's table of results. */
export const readMultiResults: ReplyReader = (reader): readonly MultiResult[] => {
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

/** How the reply to a request is read. */
export function replyReaderOf(request: Request): ReplyReader {
  switch (request.op) {
    case OpCode.getData:
    case OpCode.reconfig:
      return readNullableZnode;
    case OpCode.exists:
    case OpCode.setData:
    case OpCode.setACL:
      return readStatReply;
    case OpCode.getChildren2:
      return readChildren;
    case OpCode.getChildren:
    case OpCode.getEphemerals:
      return readNamesReply;
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
      return readCreated;
    case OpCode.create:
      return readCreatedPath;
    case OpCode.getACL:
      return readAclReply;
    case OpCode.getAllChildrenNumber:
      return readCount;
    case OpCode.whoAmI:
      return readClientInfos;
    case OpCode.multi:
    case OpCode.multiRead:
      return readMultiResults;
    case OpCode.delete:
    case OpCode.sync:
    case OpCode.setWatches:
    case OpCode.setWatches2:
    case OpCode.addWatch:
    case OpCode.checkWatches:
    case OpCode.removeWatches:
    case OpCode.auth:
    case OpCode.sasl:
    case OpCode.ping:
    case OpCode.closeSession:
      return readNothing;
  }
}

/** True when doing it twice does what doing it once does, and no client can tell the difference. */
export function isRepeatable(request: Request): boolean {
  switch (request.op) {
    case OpCode.exists:
    case OpCode.getData:
    case OpCode.getChildren:
    case OpCode.getChildren2:
    case OpCode.getACL:
    case OpCode.getAllChildrenNumber:
    case OpCode.getEphemerals:
    case OpCode.sync:
    case OpCode.multiRead:
    case OpCode.whoAmI:
    case OpCode.checkWatches:
    case OpCode.addWatch:
      return true;
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
    case OpCode.delete:
    case OpCode.setData:
    case OpCode.setACL:
    case OpCode.multi:
    case OpCode.reconfig:
    case OpCode.setWatches:
    case OpCode.setWatches2:
    case OpCode.removeWatches:
    case OpCode.auth:
    case OpCode.sasl:
    case OpCode.ping:
    case OpCode.closeSession:
      return false;
  }
}

function readNames(reader: JuteReader): readonly string[] {
  const count = reader.vectorLength(4);
  const names: string[] = [];
  for (let i = 0; i < count && !reader.failed; i++) names.push(reader.ustring() ?? '');
  return names;
}

/*
 * The bytes of a reply lie in a chunk of up to 64 KiB that the transport received. Data that is given away is copied,
 * so that a znode of a few bytes does not keep the chunk alive; small data into slabs, because an array buffer of its
 * own costs more than its bytes.
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
