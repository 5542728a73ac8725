import { ErrorCode } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Trace } from '../base/ports.ts';
import { LocalSessions } from '../session/local-sessions.ts';
import { ReadOnlySessions } from '../session/read-only-sessions.ts';
import type { Database } from '../tree/database.ts';
import type { CommittedTxns } from './apply-pace.ts';
import { endDueSessions, endLocalSession, readsPartsOf, type ServingParts } from './leader-serving.ts';
import { Pipeline } from './pipeline.ts';
import { Reads } from './read.ts';
import { READ_ONLY_GATE } from './request-gate.ts';
import type { WritePath } from './write-path.ts';

/**
 * A server without a leader that serves reads (`readonlymode.enabled`, ReadOnlyZooKeeperServer) to clients that accept
 * a read-only server.
 *
 * Its tree is recovered from the local log: it may be stale, and its last txns may be uncommitted. It makes no changes
 * and sends no requests to other servers; the role that follows starts with the same tree.
 *
 * New sessions are local to this server and end with this mode.
 */
export class ReadOnlyServing {
  readonly database: Database;
  /** Sessions of the ensemble that clients have resumed here. */
  readonly sessions: ReadOnlySessions;
  readonly local: LocalSessions;
  readonly table: LocalSessions;
  readonly pipeline: Pipeline;
  readonly #trace: Trace;

  constructor(parts: ServingParts, nowMs: number) {
    const { options, database, watches, sessionIds, trace } = parts;
    const { tickTimeMs: tickMs } = options;
    const logsTxns = options.ensemble?.syncEnabled ?? true;
    const sessions = new ReadOnlySessions(options.serverId, logsTxns, database, tickMs, nowMs);
    const local = new LocalSessions({ replicated: sessions, sessionIds, tickMs }, nowMs);
    this.database = database;
    this.sessions = sessions;
    this.local = local;
    this.#trace = trace;
    this.table = local;
    this.pipeline = new Pipeline({
      database,
      reads: new Reads(readsPartsOf(parts)),
      watches,
      sessions: local,
      writes: NO_WRITES,
      local,
      gate: READ_ONLY_GATE,
      audit: null,
      limits: parts.limits ?? null,
      work: parts.work,
      meters: parts.meters,
      trace,
      onApplied: null,
      ...(parts.pace === undefined ? {} : { pace: parts.pace }),
      committed: NO_TXNS,
      lastSynced: 0,
    });
  }

  get nextDeadlineMs(): number {
    return Math.min(this.local.nextDeadlineMs, this.sessions.nextDeadlineMs);
  }

  onTick(nowMs: number): void {
    endDueSessions(this.local, this.pipeline, this.#trace, nowMs);
    this.sessions.onTick(nowMs, (id) => {
      // Only a leader knows whether the session itself has ended.
      this.pipeline.clientOf(id)?.closeAfterReplies('its session has timed out');
    });
  }

  /** Ends a local session. @returns false when there is none with this id */
  expireSession(id: bigint): boolean {
    const session = this.table.get(id);
    if (session?.isLocal !== true) return false;
    endLocalSession(session, this.table, this.pipeline);
    return true;
  }

  /** A leader has been found. The caller must close the clients' connections. */
  drop(): void {
    this.pipeline.drop();
  }
}

/** Never used: the gate refuses every write. */
const NO_WRITES: WritePath = {
  inFlightCount: 0,
  isPreparing: false,
  advance() {},
  write: refuse,
  closeSession: refuse,
  sync: refuse,
  createSession: refuse,
  upgradeSession: refuse,
};

function refuse(): never {
  assert(false, `a write ends at the gate of a read-only server, with error ${ErrorCode.notReadOnly}`);
}

const NO_TXNS: CommittedTxns = { take: () => null, onApplied() {} };
