import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `quit` and `exit`: the end of the shell, and of its session. */
export const quit: DefineShellCommand = (command, host) => {
  command.action(() =>
    host.run(async () => {
      host.shell.isLeaving = true;
      return CommandExit.ok;
    }),
  );
};
