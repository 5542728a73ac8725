import type { Turn } from './base/turn.ts';
import { LeaderServing, type ServingParts } from './request/leader-serving.ts';
import { LearnerServing, type LearnerServingEffects } from './request/learner-serving.ts';
import { ReadOnlyServing } from './request/read-only-serving.ts';
import type { Reconfigurer } from './request/reconfig-preparer.ts';
import { Database } from './tree/database.ts';
import type { Broadcast } from './zab/broadcast.ts';
import { NO_LEASES, type SessionLeases } from './zab/learner-answers.ts';

/** The volatile state that a server has while it has a role. */
export type Serving = LeaderServing | LearnerServing | ReadOnlyServing;

/** Creates the `Serving` of each role from parts that live as long as the server. */
export class ServingFactory {
  readonly #parts: Omit<ServingParts, 'database'>;
  readonly #turn: Turn;

  constructor(parts: Omit<ServingParts, 'database'>, turn: Turn) {
    this.#parts = parts;
    this.#turn = turn;
  }

  makeDatabase(): Database {
    return new Database(this.#parts.options, this.#parts.trace);
  }

  makeLeaderServing(
    database: Database,
    broadcast: Broadcast,
    reconfigurer: Reconfigurer,
    leases: SessionLeases = NO_LEASES,
  ): LeaderServing {
    return new LeaderServing({ ...this.#parts, database, broadcast, reconfigurer, leases }, this.#turn.nowMs());
  }

  makeReadOnlyServing(database: Database): ReadOnlyServing {
    return new ReadOnlyServing({ ...this.#parts, database }, this.#turn.nowMs());
  }

  makeLearnerServing(database: Database, effects: LearnerServingEffects): LearnerServing {
    return new LearnerServing({ ...this.#parts, database }, effects, this.#turn.nowMs());
  }
}
