import { examples } from '../../run/command.ts';
import { CommandFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';
import { addLimitOptions, deleteQuota, type QuotaLimit, readQuota, writeLimits } from './quota-znodes.ts';

/** `delquota`: one limit or several, or the whole quota. */
export const delQuota: DefineShellCommand = (command, host) => {
  addLimitOptions(command.argument('<path>', 'the znode'), '')
    .addHelpText(
      'after',
      examples([
        ['delquota /jobs', 'the whole quota'],
        ['delquota -n /jobs', 'the number of znodes is not limited any more'],
      ]),
    )
    .action((text: string, options: Readonly<Partial<Record<QuotaLimit, boolean>>>) =>
      host.run(async (context) => {
        const path = context.resolve(text);
        const client = await context.connect();
        if ((await readQuota(context, client, path)) === null) {
          throw new CommandFailure(CommandExit.noNode, `Quota does not exist for ${path}`);
        }
        const limits = Object.keys(options);
        if (limits.length === 0) await deleteQuota(context, client, path);
        else await writeLimits(context, client, path, Object.fromEntries(limits.map((limit) => [limit, -1])));
        return CommandExit.ok;
      }),
    );
};
