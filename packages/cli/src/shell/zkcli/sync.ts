import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `sync`: what is read behind it is at least as new as what any client had written before it. */
export const sync: DefineShellCommand = (command, host) => {
  command.argument('[path]', 'is of no account: the server catches up with everything', '/').action((text: string) =>
    host.run(async (context) => {
      const client = await context.connect();
      await client.sync(context.resolve(text), context.call);
      await context.report.line('Sync is OK');
      return CommandExit.ok;
    }),
  );
};
