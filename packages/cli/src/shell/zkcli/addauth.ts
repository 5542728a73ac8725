import { examples } from '../../run/command.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `addauth`: for this session, on every connection that it will have. No history keeps the line. */
export const addAuth: DefineShellCommand = (command, host) => {
  command
    .argument('<scheme>', 'digest, or another one that the servers know')
    .argument('[auth]', 'for digest, user:password', '')
    .addHelpText('after', examples([['addauth digest ann:secret', 'what ann may do, this session may do']]))
    .action((scheme: string, auth: string) =>
      host.run(async (context) => {
        const client = await context.connect();
        await client.addAuth(scheme, auth);
        return CommandExit.ok;
      }),
    );
};
