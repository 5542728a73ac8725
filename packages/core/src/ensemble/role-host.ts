import type { Zxid } from '@meerkat/protocol';
import type { CoreOptions } from '../base/options.ts';
import type { Ports } from '../base/ports.ts';
import type { LinkHost } from '../links/link-host.ts';
import type { LeaderServing } from '../request/leader-serving.ts';
import type { LearnerServing } from '../request/learner-serving.ts';
import type { ServingFactory } from '../serving.ts';
import type { Storage } from '../storage/storage.ts';
import type { AnswerLease } from '../zab/answer-lease.ts';

/** What a role asks of the server around it. */
export interface RoleHost extends LinkHost {
  readonly ports: Ports;
  readonly options: CoreOptions;
  /** The storage of this incarnation. */
  readonly storage: Storage;
  readonly servings: ServingFactory;
  /**
   * Clients are served from now on, until the role ends, and answered as long as the lease lets them.
   *
   * @param epoch what any server has shown of earlier ones is either part of what is served, or was never committed
   */
  beginServing(serving: LeaderServing | LearnerServing, epoch: number, lease: AnswerLease): void;
}

/** What a role tells the peer whose role it is. */
export interface RoleEvents {
  /** The role has synchronized: leader and quorum, or learner and leader. */
  onEstablished(epoch: number, lastApplied: Zxid): void;
  /** The role is over; told once, nothing follows. What it held in memory is worth nothing any more. */
  onEnded(reason: string): void;
}
