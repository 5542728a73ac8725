import {
  BadVersionError,
  type CallOptions,
  type Client,
  isZooKeeperError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  OPEN,
  RequestTooLargeError,
  TransactionError,
} from '@meerkat/client';
import { absolutePath, differencesOf, type TreeEntry } from '../copy/tree-entry.ts';
import { pairTrees } from '../copy/tree-pairs.ts';
import { readTree } from '../copy/tree-reader.ts';
import { TreeWriter } from '../copy/tree-writer.ts';
import { count } from '../output/stat-columns.ts';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { explainFailure } from '../run/failure.ts';
import { pipelined } from './pipelined.ts';
import { walkTree } from './tree-walk.ts';

/** What is to be moved, looked at without data. */
export interface MoveSurvey {
  readonly znodes: number;
  /** Whether it goes in one transaction: all at once, or not at all. */
  readonly fitsOneRequest: boolean;
}

/** Half of what servers take in one request, with the default jute.maxbuffer. Bytes. */
const REQUEST_BYTES_MAX = 512 * 1024;
/** What the two operations of a znode take besides its data and paths, ACL included, roughly. Bytes. */
const OPERATIONS_BYTES = 256;

/**
 * Looks at a tree that is to be moved.
 *
 * @throws CommandFailure when something in it cannot be moved; NoNodeError
 */
export async function surveyMove(client: Client, from: string, to: string, call: CallOptions): Promise<MoveSurvey> {
  let znodes = 0;
  let bytes = 0;
  if ((await client.exists(from, call)) === null) throw new NoNodeError({ operation: 'move', path: from });
  for await (const { path, stat } of walkTree(client, from, call)) {
    if (stat.isEphemeral) throw ephemeralRefusal(path, '; nothing was moved');
    znodes++;
    bytes += stat.dataLength + Buffer.byteLength(path) * 2 + Math.max(0, to.length - from.length) + OPERATIONS_BYTES;
  }
  return { znodes, fitsOneRequest: bytes <= REQUEST_BYTES_MAX };
}

/** Also for an ephemeral znode that was created after the survey. */
function ephemeralRefusal(path: string, state = ''): CommandFailure {
  const message = `cannot move ${path}: it is ephemeral, and belongs to the session that created it${state}`;
  return new CommandFailure(CommandExit.badArguments, message);
}

const ATTEMPTS_MAX = 5;

/**
 * Moves a tree in one transaction: no client sees a part of it.
 *
 * @returns the number of znodes; null when it is more than one request after all
 * @throws CommandFailure when something in it cannot be moved, or its target exists
 */
export async function moveAtOnce(client: Client, from: string, to: string, call: CallOptions): Promise<number | null> {
  for (let attempt = 1; ; attempt++) {
    const entries: TreeEntry[] = [];
    for await (const entry of readTree(client, from, { ...call, withAcl: true, isRecursive: true })) {
      if (entry.kind === 'ephemeral') throw ephemeralRefusal(absolutePath(from, entry.path), '; nothing was moved');
      entries.push(entry);
    }
    const transaction = client.transaction();
    for (const { path, data, acl } of entries) {
      transaction.create(absolutePath(to, path), data, { acl: acl === null || acl.length === 0 ? OPEN : acl });
    }
    for (const { path, stat } of entries.toReversed()) {
      transaction.delete(absolutePath(from, path), { version: stat?.version });
    }
    try {
      await transaction.commit(call);
      return entries.length;
    } catch (error) {
      if (error instanceof RequestTooLargeError) return null;
      // The tree was changed since it was read: move it as it is now.
      const isStale = error instanceof TransactionError && error.index >= entries.length && isChange(error.cause);
      if (!isStale || attempt === ATTEMPTS_MAX) throw explainRefusal(error, from, to);
    }
  }
}

function isChange(error: unknown): boolean {
  return error instanceof BadVersionError || error instanceof NotEmptyError || error instanceof NoNodeError;
}

/** The transaction is an implementation detail of the move. */
function explainRefusal(error: unknown, from: string, to: string): unknown {
  if (!(error instanceof TransactionError) || !isZooKeeperError(error.cause)) return error;
  if (error.cause instanceof NodeExistsError) return targetExists(from, error.cause.path ?? to);
  const { exitCode, message } = explainFailure(error.cause);
  return new CommandFailure(exitCode, `cannot move ${from} to ${to}: ${message}; nothing was moved`, error.cause);
}

export function targetExists(from: string, to: string): CommandFailure {
  return new CommandFailure(
    CommandExit.nodeExists,
    `cannot move ${from}: ${to} exists already; nothing was moved. "rm -r" deletes it; "${to}/" moves into it`,
  );
}

/** How far a move in steps has come. */
export interface MoveProgress {
  readonly step: 'copied' | 'compared' | 'deleted';
  readonly znodes: number;
}

/**
 * Moves a tree that is more than one request: copies it, compares the copy with what is there, and deletes what was
 * compared, if it was not changed since. Others see both for a while.
 *
 * @throws CommandFailure which says what is where
 */
export async function moveInSteps(
  client: Client,
  from: string,
  to: string,
  call: CallOptions,
  onProgress: (progress: MoveProgress) => void,
): Promise<number> {
  const reading = { ...call, withAcl: true, isRecursive: true };
  const state = { copied: 0, deleted: 0, total: 0 };
  const writer = new TreeWriter(client, to, call, (_path, actions) => {
    state.copied += actions.length;
    onProgress({ step: 'copied', znodes: state.copied });
  });
  try {
    for await (const entry of readTree(client, from, reading)) {
      if (entry.kind === 'ephemeral') throw ephemeralRefusal(absolutePath(from, entry.path));
      await writer.add({ action: 'create', path: entry.path, entry });
    }
    await writer.end();
  } catch (error) {
    await writer.settle();
    if (state.copied === 0) throw error;
    throw stopped(
      error,
      `${count(state.copied)} znodes are copied to ${to}, and ${from} is whole: "rm -r ${to}" takes the copies away`,
    );
  }
  try {
    const doomed: { readonly path: string; readonly version: number }[] = [];
    for await (const { path, left, right } of pairTrees(
      readTree(client, from, reading),
      readTree(client, to, reading),
    )) {
      if (left === null || right === null || differencesOf(left, right).length > 0) {
        throw new CommandFailure(
          CommandExit.unverified,
          `the copy differs from its source at ${absolutePath(from, path)}, which may have changed meanwhile`,
        );
      }
      doomed.push({ path: absolutePath(from, path), version: left.stat?.version ?? -1 });
      onProgress({ step: 'compared', znodes: doomed.length });
    }
    state.total = doomed.length;
    const deletions = pipelined(doomed.toReversed(), ({ path, version }) => client.delete(path, { ...call, version }));
    for await (const _ of deletions) onProgress({ step: 'deleted', znodes: ++state.deleted });
    return state.total;
  } catch (error) {
    if (state.deleted === 0) {
      throw stopped(error, `${from} is whole, and its copy is in ${to}: delete one of the two with "rm -r"`);
    }
    const left = count(state.total - state.deleted);
    throw stopped(
      error,
      `the copy in ${to} is whole, and up to ${left} znodes of ${from} are left: "rm -r ${from}" deletes them`,
    );
  }
}

function stopped(error: unknown, state: string): CommandFailure {
  const { exitCode, message } = explainFailure(error);
  return new CommandFailure(exitCode, `the move stopped: ${message}; ${state}`, error);
}
