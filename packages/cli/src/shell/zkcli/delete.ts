import { examples } from '../../run/command.ts';
import { CommandExit } from '../../run/exit-code.ts';
import { parseVersion } from '../../value/expected-version.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `delete`: one znode. "rm" deletes several, and with -r those below them. */
export const deleteOne: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .option('-v, --if-version <n>', 'only if the znode has this version')
    .addHelpText('after', examples([['delete -v 3 /app/config', 'unless it was changed since']]))
    .action((text: string, options: { readonly ifVersion?: string }) =>
      host.run(async (context) => {
        const version = parseVersion(options.ifVersion);
        const client = await context.connect();
        await client.delete(context.resolve(text), { ...context.call, version });
        return CommandExit.ok;
      }),
    );
};
