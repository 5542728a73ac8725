import type { Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { DurabilityEvents, Durable } from '../base/durable.ts';
import type { LeaderServing } from '../request/leader-serving.ts';
import { NoReconfigurer } from '../request/reconfig-preparer.ts';
import { UNLIMITED } from '../zab/answer-lease.ts';
import { SoloBroadcast } from '../zab/solo.ts';
import type { Member, RecoveredState } from './member.ts';
import type { RoleHost } from './role-host.ts';

/** A standalone server: an ensemble of one, in one role until it stops or another history is restored. */
export class Solo implements Member, DurabilityEvents {
  readonly #host: RoleHost;
  #broadcast: SoloBroadcast | null = null;
  #serving: LeaderServing | null = null;

  constructor(host: RoleHost) {
    this.#host = host;
  }

  /** No other server could expire a session. */
  get sharedLeaseMs(): number {
    return 0;
  }

  get isLeaving(): boolean {
    return false;
  }

  onRecovered({ database }: RecoveredState): void {
    this.#broadcast = new SoloBroadcast(this.#host.storage, database.lastZxid);
    this.#serving = this.#host.servings.makeLeaderServing(
      database,
      this.#broadcast,
      new NoReconfigurer(this.#host.options.reconfigEnabled),
    );
    this.#host.storage.reportTo(this);
    this.#host.storage.allowSnapshots();
    this.#host.beginServing(this.#serving, 0, UNLIMITED);
  }

  onLogSynced(durable: Durable<Zxid>): void {
    assert(this.#broadcast !== null && this.#serving !== null, 'txns are logged after the recovery');
    this.#serving.onCommitted(this.#broadcast.onLogSynced(durable), this.#host.turn.nowMs());
    this.#serving.onSynced(this.#broadcast.lastSynced);
  }

  /** A standalone server has no epochs. */
  onEpochDurable(): void {}

  /** The role is over; the next recovery begins another one. */
  end(): void {
    this.#broadcast = null;
    this.#serving = null;
  }

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
