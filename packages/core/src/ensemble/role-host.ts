import type { Zxid } from '@meerkat/protocol';
import type { CoreOptions } from '../base/options.ts';
import type { Ports } from '../base/ports.ts';
import type { LinkHost } from '../links/link-host.ts';
import type { LeaderServing } from '../request/leader-serving.ts';
import type { LearnerServing } from '../request/learner-serving.ts';
import type { ServingFactory } from '../serving.ts';
import type { Storage } from '../storage/storage.ts';
import type { AnswerLease } from '../zab/answer-lease.ts';

/** What a role needs from the server around it. */
export interface RoleHost extends LinkHost {
  readonly ports: Ports;
  readonly options: CoreOptions;
  /** The storage of this incarnation. */
  readonly storage: Storage;
  readonly servings: ServingFactory;
  /**
   * Clients are served from now on until the role ends, and answered as long as the lease lasts.
   *
   * @param epoch whatever any server has shown of earlier epochs is either part of what is served, or was never
   * committed
   */
  beginServing(serving: LeaderServing | LearnerServing, epoch: number, lease: AnswerLease): void;
}

/** What a role reports to its peer. */
export interface RoleEvents {
  /** The role has synchronized: a leader with its quorum, or a learner with its leader. */
  onEstablished(epoch: number, lastApplied: Zxid): void;
  /** The role is over. Called once, as the last event; the role's in-memory state must be discarded. */
  onEnded(reason: string): void;
}
