import type { ServerState } from '../monitoring/server-state.ts';
import { rollingOrder } from '../rolling/roll.ts';

/** What is to be done, in order. */
export interface MigrationStep {
  readonly step: number;
  readonly server: string;
  readonly role: string | null;
  /** Done: it is of the target already. */
  readonly isDone: boolean;
  readonly action: string;
  /** What is seen when it is done. */
  readonly until: string;
}

/** Which program the servers are to be of in the end. */
export type MigrationTarget = 'meerkat' | 'apache';

export function isOf({ version }: ServerState, target: MigrationTarget): boolean {
  return version !== null && version.includes('meerkat') === (target === 'meerkat');
}

/** One server after the other, the leader last. The way back is the same with the other target. */
export function planMigration(states: readonly ServerState[], target: MigrationTarget): MigrationStep[] {
  const [from, to] =
    target === 'meerkat' ? ["Apache's server", 'meerkat server zoo.cfg'] : ['meerkat', "Apache's server"];
  return rollingOrder(states).map((state, i) => ({
    step: i + 1,
    server: state.server.name,
    role: state.role,
    isDone: isOf(state, target),
    action: `stop ${from}, start ${to} with the same zoo.cfg, myid and directories`,
    until: 'meerkat migrate status shows it as follower, observer or leader, with a lag near 0',
  }));
}
