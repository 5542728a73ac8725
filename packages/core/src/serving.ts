import type { ContainerSweep } from './request/container-sweep.ts';
import type { Pipeline } from './request/pipeline.ts';
import type { SessionTracker } from './session/session-tracker.ts';
import type { Database } from './tree/database.ts';
import type { SoloBroadcast } from './zab/solo.ts';

/** What exists once the database has been recovered: the volatile state of one incarnation of the server. */
export interface Serving {
  readonly database: Database;
  readonly broadcast: SoloBroadcast;
  readonly sessions: SessionTracker;
  readonly pipeline: Pipeline;
  readonly containers: ContainerSweep;
}
