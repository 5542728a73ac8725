import type { TraceEvent } from '@meerkat/core';
import { OpCode, PacketType, type TxnEntry } from '@meerkat/protocol';
import type { WireEvent } from './checkers/wire.ts';
import type { History, MultiPart } from './history.ts';
import type { Trait } from './traits.ts';
import { ELECTION_PORT, OBSERVER_MASTER_PORT, portKindOf, QUORUM_PORT } from './virtual-ensemble.ts';
import type { VirtualServer } from './virtual-server.ts';
import { OVERLONG_PATH } from './workload-options.ts';
import type { WorldWatcher } from './world-watcher.ts';

/** What must have happened in a world with a trait, for the trait to have made a difference. */
export const SIGHTINGS: Readonly<Record<Trait, readonly string[]>> = {
  'log-directory': ['log file in a directory of its own'],
  'small-logs': ['log file that was full'],
  purge: ['files purged'],
  'short-memory': ['learner sent more than the memory of its leader'],
  'lazy-observers': ['txn applied without a log'],
  acls: ['permissions set', 'request refused for want of permission'],
  'short-txns': ['session whose end fills a txn', 'request too long for every server'],
  'two-addresses': ['second address dialled'],
  collectables: ['container or TTL znode collected'],
  'large-values': ['value above 100 kB', 'snapshot of several slices'],
  quotas: ['quota exceeded'],
  busy: ['second with sixty requests'],
  'huge-sessions': ['session with thousands of ephemerals ended'],
  'ended-by-hand': ['session ended by hand'],
  'read-only': ['server that became read-only', 'read answered by a read-only server'],
  'observer-masters': ['observer that hangs on a follower'],
  'local-sessions': ['local session', 'local session upgraded'],
  'io-threads': ['I/O thread that died'],
  'slow-servers': ['turn that left work to the next one'],
  rewrites: ['five multis that replace a znode', 'five multis that fail after they have replaced a znode'],
  'abandoned-sessions': ['five sessions that expired'],
  'small-windows': ['stream whose kernel was full'],
};

/** Of a reconfiguration that has come into force at its leader. */
export const MEMBERS_CHANGED = 'membership that has come into force';

/** Counts, in one world, what only some traits lead to. */
export class Sightings implements WorldWatcher {
  readonly counts: Map<string, number> = new Map();
  /** Proposals that were sent over each connection since its DIFF; until NEWLEADER. */
  readonly #history: Map<number, number> = new Map();
  /** Servers that start a new log file for a reason other than its size. */
  readonly #mayBegin: Set<VirtualServer> = new Set();
  /** Sessions that their server made without a txn. */
  readonly #local: Set<bigint> = new Set();
  /** Sessions that a leader has ended. */
  readonly #expired: Set<bigint> = new Set();

  onChange(server: VirtualServer, what: string): void {
    if (what === 'starts') this.#mayBegin.add(server);
    if (what === 'loses an I/O thread') this.#count('I/O thread that died');
  }

  onTrace(server: VirtualServer, event: TraceEvent): void {
    const { logDirectory, snapshotDirectory } = server.options;
    switch (event.kind) {
      case 'role-changed':
      case 'snapshot-started':
        this.#mayBegin.add(server);
        break;
      case 'log-file-started':
        if (logDirectory !== snapshotDirectory) this.#count('log file in a directory of its own');
        if (!this.#mayBegin.delete(server)) this.#count('log file that was full');
        break;
      case 'membership-changed':
        if (server.role === 'leading' && event.committed.version % 0x100000000 !== 0) this.#count(MEMBERS_CHANGED);
        break;
      case 'read-only-changed':
        if (event.isReadOnly) this.#count('server that became read-only');
        break;
      case 'learner-synchronized':
        if (server.role === 'following') this.#count('observer that hangs on a follower');
        break;
      case 'session-created':
        if (server.options.ensemble?.localSessionsEnabled !== true) break;
        this.#local.add(event.sessionId);
        this.#count('local session');
        break;
      case 'session-expired':
        this.#expired.add(event.sessionId);
        if (this.#expired.size === 5) this.#count('five sessions that expired');
        break;
      case 'files-purged':
        if (event.files.length > 0) this.#count('files purged');
        break;
      case 'snapshot-written':
        if (event.bytes > SLICE_BYTES) this.#count('snapshot of several slices');
        break;
    }
  }

  onApplied(server: VirtualServer): void {
    if (server.role === 'observing' && server.options.ensemble?.syncEnabled === false) {
      this.#count('txn applied without a log');
    }
  }

  onTurn(server: VirtualServer): void {
    if (server.core?.nextDeadlineMs() === 0) this.#count('turn that left work to the next one');
  }

  /** A server has dialled another one. */
  onDialled(port: number): void {
    const isFirst = port === QUORUM_PORT || port === ELECTION_PORT || port === OBSERVER_MASTER_PORT;
    if (portKindOf(port) !== null && !isFirst) this.#count('second address dialled');
  }

  /** @param commitLogCount of the servers */
  onWire(event: WireEvent, commitLogCount: number): void {
    if (event.kind !== 'leader-packet' || event.stage !== 'sent') return;
    const { type } = event.packet;
    if (type === PacketType.diff || type === PacketType.trunc) this.#history.set(event.connection, 0);
    const sent = this.#history.get(event.connection);
    if (sent === undefined) return;
    if (type === PacketType.proposal) this.#history.set(event.connection, sent + 1);
    if (type !== PacketType.newLeader) return;
    this.#history.delete(event.connection);
    if (sent > commitLogCount) this.#count('learner sent more than the memory of its leader');
  }

  /** A run is over. */
  onEnd(history: History, committed: readonly TxnEntry[], txnBytesMax: number, backedUpCount: number): void {
    if (backedUpCount > 0) this.#count('stream whose kernel was full');
    const perSecond: Map<number, number> = new Map();
    let replacing = 0;
    let failing = 0;
    const readOnly = new Set<number>();
    for (const entry of history.entries) {
      if (entry.kind === 'connected' && entry.isReadOnly) readOnly.add(entry.connection);
    }
    for (const { request, result, error, startMs, connection } of history.operations) {
      if (result !== null && readOnly.has(connection)) this.#count('read answered by a read-only server');
      const second = Math.floor(startMs / 1000);
      const count = (perSecond.get(second) ?? 0) + 1;
      perSecond.set(second, count);
      if (count === 60) this.#count('second with sixty requests');
      if (request.op === 'setAcl' && result !== null) this.#count('permissions set');
      if ('path' in request && request.path === OVERLONG_PATH && error?.code === 'CONNECTIONLOSS') {
        this.#count('request too long for every server');
      }
      if (request.op === 'multi') {
        const failedPart = error?.failedPart ?? null;
        if (result !== null && isReplacing(request.parts)) replacing++;
        if (failedPart !== null && isReplacing(request.parts.slice(0, failedPart))) failing++;
      }
      if (error?.code === 'NOAUTH') this.#count('request refused for want of permission');
      if (error?.code === 'QUOTAEXCEEDED') this.#count('quota exceeded');
    }
    if (replacing >= 5) this.#count('five multis that replace a znode');
    if (failing >= 5) this.#count('five multis that fail after they have replaced a znode');
    for (const { header, txn } of committed) {
      if (txn.type === OpCode.createSession && this.#local.has(header.sessionId)) this.#count('local session upgraded');
      if (txn.type === OpCode.deleteContainer) this.#count('container or TTL znode collected');
      if (txn.type === OpCode.setData && (txn.data?.length ?? 0) > 100_000) this.#count('value above 100 kB');
      if (txn.type !== OpCode.closeSession) continue;
      // No client has requested it.
      if (header.cxid === 0 && !this.#expired.has(header.sessionId)) this.#count('session ended by hand');
      const paths = txn.paths ?? [];
      if (paths.length >= 1000) this.#count('session with thousands of ephemerals ended');
      if (paths.reduce((sum, path) => sum + path.length, 0) > txnBytesMax / 2) {
        this.#count('session whose end fills a txn');
      }
    }
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
}

function isReplacing(parts: readonly MultiPart[]): boolean {
  const deleted = new Set(parts.flatMap(({ op, path }) => (op === 'delete' ? [path] : [])));
  return parts.some(({ op, path }) => op === 'create' && deleted.has(path));
}

/** Bytes of a snapshot that a server writes at once. */
const SLICE_BYTES = 256 * 1024;
