import { type Acl, ErrorCode, OpCode, type Txn, type TxnEntry } from '@meerkat/protocol';

/** What a txn, or a part of a multi, does: in words, with what is not part of its kind left out. */
export interface TxnRecord {
  /** As Apache's tools call it: createSession, create, setData, multi, error … */
  readonly type: string;
  readonly path?: string;
  /** null: the znode has none. A view of the file's bytes. */
  readonly data?: Uint8Array | null;
  readonly acl?: readonly Acl[];
  readonly isEphemeral?: boolean;
  /** Milliseconds. */
  readonly ttl?: number;
  /** How many children the parent has ever had, this one included. */
  readonly parentCversion?: number;
  /** The version (of setACL: aversion) that the znode has afterwards; of a check, the one it had to have. */
  readonly version?: number;
  /** Of a session, milliseconds. */
  readonly timeoutMs?: number;
  /** What a closeSession deletes; null: an old log does not say. */
  readonly paths?: readonly string[] | null;
  /** Name of the error of a request that was refused. */
  readonly error?: string;
  readonly parts?: readonly TxnRecord[];
}

export function recordOf({ txn }: Pick<TxnEntry, 'txn'>): TxnRecord {
  const type = TYPE_NAMES.get(txn.type) ?? `unknown ${txn.type}`;
  return { type, ...fieldsOf(txn) };
}

function fieldsOf(txn: Txn): Omit<TxnRecord, 'type'> {
  switch (txn.type) {
    case OpCode.create:
    case OpCode.create2: {
      const { path, data, acl, isEphemeral, parentCversion } = txn;
      return { path, data, acl, isEphemeral, parentCversion };
    }
    case OpCode.createContainer: {
      const { path, data, acl, parentCversion } = txn;
      return { path, data, acl, parentCversion };
    }
    case OpCode.createTTL: {
      const { path, data, acl, parentCversion, ttl } = txn;
      return { path, data, acl, parentCversion, ttl };
    }
    case OpCode.delete:
    case OpCode.deleteContainer:
      return { path: txn.path };
    case OpCode.setData:
    case OpCode.reconfig:
      return { path: txn.path, data: txn.data, version: txn.version };
    case OpCode.setACL:
      return { path: txn.path, acl: txn.acl, version: txn.version };
    case OpCode.check:
      return { path: txn.path, version: txn.version };
    case OpCode.createSession:
      return { timeoutMs: txn.timeoutMs };
    case OpCode.closeSession:
      return { paths: txn.paths };
    case OpCode.error:
      return { error: ERROR_NAMES.get(txn.error) ?? String(txn.error) };
    case OpCode.multi:
      return { parts: txn.txns.map((part) => recordOf({ txn: part })) };
  }
}

const TYPE_NAMES: ReadonlyMap<number, string> = new Map(Object.entries(OpCode).map(([name, code]) => [code, name]));
const ERROR_NAMES: ReadonlyMap<number, string> = new Map(Object.entries(ErrorCode).map(([name, code]) => [code, name]));
