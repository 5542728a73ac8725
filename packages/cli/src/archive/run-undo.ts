import { type Client, isZooKeeperError, type Transaction, type TransactionResult } from '@meerkat/client';
import { type Acl, readTxnEffects, showZxid, type TxnEffects, type ZnodeMoment } from '@meerkat/server/archive';
import type { Column } from '../output/column.ts';
import { hex, localTime } from '../output/stat-columns.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { withArchive } from './archive-failure.ts';
import { momentOf } from './moment-words.ts';
import { isBelow } from './one-file.ts';
import { openSource } from './source.ts';
import { describeAcl, describeData, describeRecord } from './txn-text.ts';
import type { UndoWords } from './words.ts';

/** One znode on its way back. */
type Step =
  | { readonly kind: 'create'; readonly path: string; readonly to: ZnodeMoment }
  | { readonly kind: 'delete'; readonly path: string; readonly from: ZnodeMoment }
  | { readonly kind: 'set'; readonly path: string; readonly from: ZnodeMoment; readonly to: ZnodeMoment }
  | { readonly kind: 'acl'; readonly path: string; readonly from: ZnodeMoment; readonly to: ZnodeMoment };

const COLUMNS: readonly Column<Step>[] = [
  { name: 'operation', value: ({ kind }) => kind },
  { name: 'path', value: ({ path }) => path },
  { name: 'value', value: shownValue },
];

function shownValue(step: Step): string {
  switch (step.kind) {
    case 'delete':
      return '';
    case 'acl':
      return describeAcl(step.to.acl);
    case 'create':
    case 'set':
      return describeData(step.to.data);
  }
}

export function runUndo(context: Context, text: string, words: UndoWords): Promise<CommandExit> {
  const moment = momentOf(text, 'undo');
  if (moment?.kind !== 'zxid')
    throw new InvocationFailure(`undo: expected a zxid such as 0x10000a5b3, found "${text}"`);
  return withArchive(async () => {
    const files = await openSource(context, words);
    using progress = context.progress();
    const effects = await readTxnEffects(files, {
      zxid: moment.zxid,
      onWarning: (warning) => context.note(warning),
      onProgress: (what) => progress.update(() => what),
      signal: context.signal,
    });
    await files.close();
    progress.clear();
    const { timeMs, session, record } = effects;
    context.note(`${localTime(timeMs)} session ${hex(session)}: ${describeRecord(record)}`);
    const steps = stepsOf(effects, words.path, context);
    if (steps.length === 0) {
      context.note(`zxid ${text} has changed nothing that can be written back`);
      return CommandExit.no;
    }
    if (words.dryRun !== true) await write(context, steps, moment.zxid);
    const list = await context.report.list(COLUMNS);
    for (const step of steps) await list.add(step);
    await list.end();
    return CommandExit.ok;
  });
}

/** Parents are created before their children, and deleted behind them. */
function stepsOf({ znodes }: TxnEffects, top: string | undefined, context: Context): readonly Step[] {
  const creates: Step[] = [];
  const changes: Step[] = [];
  const deletes: Step[] = [];
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
    if (isEphemeral(before.ephemeralOwner))
      context.note(`${path} was an ephemeral of session ${hex(before.ephemeralOwner)}: it stays away`);
    else creates.push({ kind: 'create', path, to: before });
  }
  return [...deletes, ...creates, ...changes];
}

async function write(context: Context, steps: readonly Step[], zxid: number): Promise<void> {
  const client = await context.connect();
  const { call } = context;
  const transaction: Transaction<TransactionResult[]> = client.transaction();
  for (const step of steps) {
    const { path } = step;
    if (step.kind === 'create') {
      if ((await client.exists(path, call)) !== null) throw later(path, zxid, 'it is there again');
      transaction.create(path, step.to.data ?? EMPTY, { acl: aclOf(step.to.acl), ...modeOf(step.to) });
      continue;
    }
    const stat = await client.exists(path, call);
    const { from } = step;
    if (stat === null) throw later(path, zxid, 'it was deleted');
    if (stat.czxid !== BigInt(from.czxid)) throw later(path, zxid, 'it was deleted and created again');
    if (step.kind === 'acl') {
      if (stat.aversion !== from.aversion) throw later(path, zxid, 'its ACL was changed');
      continue;
    }
    if (stat.version !== from.version) throw later(path, zxid, 'its data were changed');
    if (step.kind === 'delete') transaction.delete(path, { version: from.version });
    else transaction.set(path, step.to.data ?? EMPTY, { version: from.version });
  }
  try {
    if (transaction.size > 0) await transaction.commit(call);
    await setAcls(client, steps, context);
  } catch (error) {
    if (isZooKeeperError(error) && ['BADVERSION', 'NODEEXISTS', 'NONODE', 'NOTEMPTY'].includes(error.code)) {
      throw later(error.path ?? 'a znode', zxid, 'it was written in this moment, or has children since', error);
    }
    throw error;
  }
}

/** No transaction of the protocol sets an ACL. */
async function setAcls(client: Client, steps: readonly Step[], { call }: Context): Promise<void> {
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

const CONTAINER_OWNER = 1n << 63n;

function modeOf({ ephemeralOwner }: ZnodeMoment): { readonly mode?: 'container'; readonly ttlMs?: number } {
  const bits = BigInt.asUintN(64, ephemeralOwner);
  if (bits === CONTAINER_OWNER) return { mode: 'container' };
  return bits >> 40n === 0xff0000n ? { ttlMs: Number(bits & 0xffffffffffn) } : {};
}

function isEphemeral(owner: bigint): boolean {
  const bits = BigInt.asUintN(64, owner);
  return bits !== 0n && bits !== CONTAINER_OWNER && bits >> 40n !== 0xff0000n;
}

const EMPTY = new Uint8Array(0);
