import type { Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Durable } from '../base/durable.ts';
import type { LeaderServing } from '../request/leader-serving.ts';
import type { Serving } from '../serving.ts';
import type { Storage } from '../storage/storage.ts';
import type { Database } from '../tree/database.ts';
import type { Broadcast } from '../zab/broadcast.ts';
import { SoloBroadcast } from '../zab/solo.ts';
import type { Member, RecoveredState } from './member.ts';

/** What a lone server's role asks of the server around it. */
export interface SoloHost {
  readonly storage: Storage;
  nowMs(): number;
  makeLeaderServing(database: Database, broadcast: Broadcast): LeaderServing;
  beginServing(serving: Serving): void;
}

/** A server of its own: an ensemble of one, in one role for all its life. */
export class Solo implements Member {
  readonly #host: SoloHost;
  #broadcast: SoloBroadcast | null = null;
  #serving: LeaderServing | null = null;

  constructor(host: SoloHost) {
    this.#host = host;
  }

  get isLeaving(): boolean {
    return false;
  }

  onRecovered({ database }: RecoveredState): void {
    this.#broadcast = new SoloBroadcast(this.#host.storage, database.lastZxid);
    this.#serving = this.#host.makeLeaderServing(database, this.#broadcast);
    this.#host.storage.allowSnapshots();
    this.#host.beginServing(this.#serving);
  }

  onLogSynced(durable: Durable<Zxid>): void {
    assert(this.#broadcast !== null && this.#serving !== null, 'txns are logged after the recovery');
    this.#serving.onCommitted(this.#broadcast.onLogSynced(durable), this.#host.nowMs());
    this.#serving.onSynced(this.#broadcast.lastSynced);
  }

  onEpochDurable(): void {}

  onTruncateRefused(): void {}

  onSnapshotInstalled(): void {}

  onTick(): void {}

  onTurnEnd(): void {}

  nextDeadlineMs(): number {
    return Number.POSITIVE_INFINITY;
  }

  stop(): void {}

  isReadyToStop(): boolean {
    return this.#serving === null || this.#serving.pipeline.inFlightCount === 0;
  }

  abandon(): void {}
}
