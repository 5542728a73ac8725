import { type ClientOp, OpCode } from '@meerkat/protocol';

interface Operation {
  /** Its short name in `cons` (Request.op2String); null: it never appears there. */
  readonly shortName: string | null;
  /** Whether the metrics count it as a read or as an update. */
  readonly isRead: boolean;
}

/** Every operation that a client may send; outside a multi a `check` is always refused. */
export const OPERATIONS: { readonly [Op in ClientOp | typeof OpCode.check]: Operation } = {
  [OpCode.create]: { shortName: 'CREA', isRead: false },
  [OpCode.create2]: { shortName: 'CREA', isRead: false },
  [OpCode.createContainer]: { shortName: 'CREA', isRead: false },
  [OpCode.createTTL]: { shortName: 'CREA', isRead: false },
  [OpCode.delete]: { shortName: 'DELE', isRead: false },
  [OpCode.setData]: { shortName: 'SETD', isRead: false },
  [OpCode.setACL]: { shortName: 'SETA', isRead: false },
  [OpCode.check]: { shortName: 'CHEC', isRead: false },
  [OpCode.multi]: { shortName: 'MULT', isRead: false },
  [OpCode.reconfig]: { shortName: 'RECO', isRead: false },
  [OpCode.closeSession]: { shortName: 'CLOS', isRead: false },
  [OpCode.exists]: { shortName: 'EXIS', isRead: true },
  [OpCode.getData]: { shortName: 'GETD', isRead: true },
  [OpCode.getACL]: { shortName: 'GETA', isRead: true },
  [OpCode.getChildren]: { shortName: 'GETC', isRead: true },
  [OpCode.getChildren2]: { shortName: 'GETC', isRead: true },
  [OpCode.getAllChildrenNumber]: { shortName: 'GETACN', isRead: true },
  [OpCode.getEphemerals]: { shortName: 'GETE', isRead: true },
  [OpCode.multiRead]: { shortName: 'MLTR', isRead: true },
  [OpCode.setWatches]: { shortName: 'SETW', isRead: true },
  [OpCode.setWatches2]: { shortName: 'STW2', isRead: true },
  [OpCode.addWatch]: { shortName: 'ADDW', isRead: true },
  [OpCode.checkWatches]: { shortName: 'CHKW', isRead: true },
  [OpCode.removeWatches]: { shortName: 'REMW', isRead: true },
  [OpCode.whoAmI]: { shortName: 'HOMI', isRead: true },
  [OpCode.sync]: { shortName: 'SYNC', isRead: true },
  [OpCode.ping]: { shortName: 'PING', isRead: true },
  [OpCode.auth]: { shortName: null, isRead: false },
  [OpCode.sasl]: { shortName: null, isRead: false },
};

/** The entries of `OPERATIONS`, with numeric codes. */
export const OPERATION_ENTRIES: readonly (readonly [op: number, operation: Operation])[] = Object.entries(
  OPERATIONS,
).map(([op, operation]) => [Number(op), operation]);
