import type { ServerState } from '../monitoring/server-state.ts';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';

/** How many clients a server that drains still has. @throws CommandFailure when it does not say */
export function clientsLeft({ problem, connections }: ServerState): number {
  if (problem !== null) {
    throw new CommandFailure(CommandExit.no, `it drains, but how many clients are left is not known: ${problem}`);
  }
  // The question itself is a connection.
  return Math.max(0, connections - 1);
}
