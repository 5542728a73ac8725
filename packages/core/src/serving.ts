import type { Turn } from './base/turn.ts';
import { LeaderServing, type ServingParts } from './request/leader-serving.ts';
import { LearnerServing, type LearnerServingEffects } from './request/learner-serving.ts';
import { Database } from './tree/database.ts';
import type { Broadcast } from './zab/broadcast.ts';

/** What exists while a server has a role: the volatile state of one incarnation of it. */
export type Serving = LeaderServing | LearnerServing;

/** Makes the `Serving` of each role from what lives as long as the server. */
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

  makeLeaderServing(database: Database, broadcast: Broadcast): LeaderServing {
    return new LeaderServing({ ...this.#parts, database, broadcast }, this.#turn.nowMs());
  }

  makeLearnerServing(database: Database, effects: LearnerServingEffects): LearnerServing {
    return new LearnerServing({ ...this.#parts, database }, effects);
  }
}
