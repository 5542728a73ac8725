import { type CallOptions, type Client, isZooKeeperError, TransactionError } from '@meerkat/client';
import { type Acl, showZxid, type TxnEffects, type ZnodeMoment } from '@meerkat/server/archive';
import { hex } from '../output/stat-columns.ts';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { isBelow } from './one-file.ts';
import { kindOfOwner, ttlOfOwner } from './znode-kind.ts';

/** How one znode is restored. */
export type UndoStep =
  | { readonly kind: 'create'; readonly path: string; readonly to: ZnodeMoment }
  | { readonly kind: 'delete'; readonly path: string; readonly from: ZnodeMoment }
  | { readonly kind: 'set'; readonly path: string; readonly from: ZnodeMoment; readonly to: ZnodeMoment }
  | { readonly kind: 'acl'; readonly path: string; readonly from: ZnodeMoment; readonly to: ZnodeMoment };

/** Parents are created before their children, and deleted after them. */
export function undoSteps(
  { znodes }: TxnEffects,
  top: string | undefined,
  onNote: (text: string) => void,
): readonly UndoStep[] {
  const creates: UndoStep[] = [];
  const changes: UndoStep[] = [];
  const deletes: UndoStep[] = [];
  for (const { path, before, after } of znodes) {
    if (!isBelow(path, top)) continue;
    if (after !== null && before !== null && before.czxid === after.czxid) {
      const isSame =
        Buffer.compare(before.data ?? EMPTY, after.data ?? EMPTY) === 0 && before.version === after.version;
      if (!isSame) changes.push({ kind: 'set', path, from: after, to: before });
      if (before.aversion !== after.aversion) changes.push({ kind: 'acl', path, from: after, to: before });
      continue;
    }
    if (after !== null) deletes.unshift({ kind: 'delete', path, from: after });
    if (before === null) continue;
    if (kindOfOwner(before.ephemeralOwner) === 'ephemeral')
      onNote(`${path} was an ephemeral of session ${hex(before.ephemeralOwner)}: it stays away`);
    else creates.push({ kind: 'create', path, to: before });
  }
  return [...deletes, ...creates, ...changes];
}

/**
 * Restores the former state, unless one of the znodes has changed since: data in one transaction, then the ACLs.
 *
 * @throws CommandFailure which says what was changed; ZooKeeperError
 */
export async function writeUndo(
  client: Client,
  steps: readonly UndoStep[],
  zxid: number,
  call: CallOptions,
): Promise<void> {
  const transaction = client.transaction();
  const written: string[] = [];
  for (const step of steps) {
    const { path } = step;
    if (step.kind === 'create') {
      if ((await client.exists(path, call)) !== null) throw later(path, zxid, 'it is there again');
      transaction.create(path, step.to.data, { acl: aclOf(step.to.acl), ...modeOf(step.to) });
      written.push(path);
      continue;
    }
    const stat = await client.exists(path, call);
    const { from } = step;
    if (stat === null) throw later(path, zxid, 'it was deleted');
    if (stat.czxid !== BigInt(from.czxid)) throw later(path, zxid, 'it was deleted and created again');
    // Of a set the ACL does not matter, and of an ACL the data.
    if (step.kind !== 'set' && stat.aversion !== from.aversion) throw later(path, zxid, 'its ACL was changed');
    if (step.kind === 'acl') continue;
    if (stat.version !== from.version) throw later(path, zxid, 'its data were changed');
    if (step.kind === 'delete') transaction.delete(path, { version: from.version });
    else transaction.set(path, step.to.data, { version: from.version });
    written.push(path);
  }
  try {
    if (transaction.size > 0) await transaction.commit(call);
    await setAcls(client, steps, call);
  } catch (error) {
    throw explain(error, written, zxid);
  }
}

/** Explains a failed transaction: a znode changed after it was checked, or has children. */
function explain(error: unknown, written: readonly string[], zxid: number): unknown {
  const cause = error instanceof TransactionError ? error.cause : error;
  if (!isZooKeeperError(cause)) return error;
  const what = CHANGES[cause.code];
  if (what === undefined) return error;
  const path = (error instanceof TransactionError ? written[error.index] : cause.path) ?? 'a znode';
  return later(path, zxid, what, error);
}

const CHANGES: Readonly<Record<string, string>> = {
  BADVERSION: 'it was written in this moment',
  NODEEXISTS: 'it was created in this moment',
  NONODE: 'it, or its parent, was deleted',
  NOTEMPTY: 'it has children',
};

/** No transaction of the protocol sets an ACL. */
async function setAcls(client: Client, steps: readonly UndoStep[], call: CallOptions): Promise<void> {
  for (const step of steps) {
    if (step.kind !== 'acl') continue;
    await client.setAcl(step.path, aclOf(step.to.acl), { ...call, version: step.from.aversion });
  }
}

function later(path: string, zxid: number, what: string, cause?: unknown): CommandFailure {
  return new CommandFailure(
    CommandExit.badVersion,
    `cannot undo ${showZxid(zxid)}: ${path} was changed since: ${what}. Nothing was written; "meerkat history ${path}" shows by whom, and "get --at" ` +
      'what it was',
    cause,
  );
}

function aclOf(
  acl: readonly Acl[],
): readonly { readonly scheme: string; readonly id: string; readonly perms: number }[] {
  return acl.map(({ scheme, id, perms }) => ({ scheme: scheme ?? '', id: id ?? '', perms }));
}

function modeOf({ ephemeralOwner }: ZnodeMoment): { readonly mode?: 'container'; readonly ttlMs?: number } {
  const kind = kindOfOwner(ephemeralOwner);
  if (kind === 'container') return { mode: 'container' };
  return kind === 'ttl' ? { ttlMs: ttlOfOwner(ephemeralOwner) } : {};
}

const EMPTY = new Uint8Array(0);
