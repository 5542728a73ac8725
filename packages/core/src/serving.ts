import type { LeaderServing } from './request/leader-serving.ts';
import type { LearnerServing } from './request/learner-serving.ts';

/** What exists while a server has a role: the volatile state of one incarnation of it. */
export type Serving = LeaderServing | LearnerServing;
