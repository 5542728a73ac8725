import {
  DIGEST_VERSION,
  type ForwardedRequestPacket,
  JuteReader,
  makeProposal,
  OpCode,
  PacketType,
  type RevalidateRequestPacket,
  readTxnEntry,
  type TxnEntry,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { onDisk } from '../base/durable.ts';
import { Meters } from '../base/meters/meters.ts';
import { type CoreOptions, DEFAULT_CORE_OPTIONS } from '../base/options.ts';
import type { TraceEvent } from '../base/ports.ts';
import { LeaderServing, type ServingParts } from '../request/leader-serving.ts';
import { LearnerServing } from '../request/learner-serving.ts';
import { Permission } from '../request/permission.ts';
import { WorkMeter } from '../request/work-meter.ts';
import { SessionIds } from '../session/session-ids.ts';
import { Database } from '../tree/database.ts';
import { WatchManager } from '../watch/watch-manager.ts';
import type { Committed } from '../zab/committed.ts';
import { SoloBroadcast } from '../zab/solo.ts';
import { PipelineClient } from './pipeline-client.ts';
import { PLAIN_AUTHENTICATOR } from './plain-authenticator.ts';

const OPTIONS: CoreOptions = {
  ...DEFAULT_CORE_OPTIONS,
  snapshotDirectory: '/data',
  logDirectory: '/data',
  tickTimeMs: 1000,
};

/** Parts of a server that serves; its trace events are collected. */
export function makeServingParts(serverId: number, trace: TraceEvent[] = []): ServingParts {
  const work = new WorkMeter();
  const sink = { emit: (event: TraceEvent) => void trace.push(event) };
  return {
    options: { ...OPTIONS, serverId },
    database: new Database(OPTIONS, sink),
    permission: new Permission(PLAIN_AUTHENTICATOR, false, work),
    authenticator: PLAIN_AUTHENTICATOR,
    watches: new WatchManager(),
    sessionIds: new SessionIds(serverId, 1_700_000_000_000),
    work,
    meters: new Meters({ monotonicMs: () => 0, wallMs: () => 0 }),
    trace: sink,
    onApplied: null,
  };
}

/** A server that proposes; a test decides when its proposals are committed. */
export class LeaderParty {
  readonly trace: TraceEvent[] = [];
  /** Everything that was proposed, in zxid order. */
  readonly log: TxnEntry[] = [];
  readonly broadcast: SoloBroadcast;
  readonly serving: LeaderServing;

  constructor(parts: Partial<ServingParts> = {}) {
    const append = (header: TxnEntry['header'], txn: TxnEntry['txn'], treeDigest: bigint | null) => {
      const digest = treeDigest === null ? null : { version: DIGEST_VERSION, treeDigest };
      this.log.push({ header, txn, digest });
      return 0;
    };
    this.broadcast = new SoloBroadcast({ append }, parts.database?.lastZxid ?? ZXID_ZERO);
    this.serving = new LeaderServing({ ...makeServingParts(1, this.trace), ...parts, broadcast: this.broadcast }, 0);
  }

  /** Commits everything proposed so far, or up to a zxid, and answers the syncs before it. */
  commit(upTo: Zxid = this.broadcast.lastProposed, nowMs = 0): void {
    const watermark = this.broadcast.onLogSynced(onDisk(upTo));
    this.serving.onCommitted(watermark, nowMs);
    this.serving.onSynced(this.broadcast.lastSynced);
  }

  /** A learner forwards a request. @returns for a sync the ticket, once it has one */
  forward(owner: number, request: ForwardedRequestPacket, nowMs = 0, wallMs = 0): { ticket: number | null } {
    const asked: { ticket: number | null } = { ticket: null };
    this.serving.onForwarded(owner, request, nowMs, wallMs, (ticket) => {
      asked.ticket = ticket;
    });
    return asked;
  }

  /** A learner revalidates a session of its client. */
  revalidate(owner: number, sessionId: bigint, timeoutMs: number): boolean {
    return this.serving.revalidate(owner, sessionId, timeoutMs, 0);
  }

  /** A client with a session. */
  connect(timeoutMs?: number): PipelineClient {
    const client = new PipelineClient(this.serving.pipeline).create(timeoutMs);
    this.commit();
    return client;
  }

  /** The results of a session's txns, in zxid order: type, or error code of an ErrorTxn. */
  outcomesOf(sessionId: bigint): number[] {
    const entries = this.log.filter(({ header }) => header.sessionId === sessionId);
    return entries.map(({ txn }) => (txn.type === OpCode.error ? txn.error : txn.type));
  }
}

/** A learner; its requests to its leader are collected. */
export class LearnerParty {
  readonly trace: TraceEvent[] = [];
  readonly asked: (ForwardedRequestPacket | RevalidateRequestPacket)[] = [];
  readonly serving: LearnerServing;

  constructor(serverId = 2, parts: Partial<ServingParts> = {}) {
    this.serving = new LearnerServing(
      { ...makeServingParts(serverId, this.trace), ...parts },
      {
        // The bytes of a request are the connection's.
        forward: (packet) => void this.asked.push({ ...packet, body: packet.body.slice() }),
        revalidate: (packet) => void this.asked.push(packet),
      },
      0,
    );
  }

  /** Receives a txn as encoded on a link. */
  propose(entry: TxnEntry): void {
    const copy = readTxnEntry(new JuteReader(makeProposal(PacketType.proposal, entry).payload));
    if (copy === null) throw new Error('a txn that was written can be read');
    this.serving.onProposed(copy);
  }

  commit(watermark: Zxid, nowMs = 0): void {
    this.serving.onCommitted(watermark as Committed<Zxid>, nowMs);
  }

  client(): PipelineClient {
    return new PipelineClient(this.serving.pipeline);
  }
}
