import { NoNodeError } from '@meerkat/client';
import { examples } from '../../run/command.ts';
import { InvocationFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';
import { addLimitOptions, type QuotaLimit, writeLimits } from './quota-znodes.ts';

/** `setquota`: one limit or several; the others stay as they are. */
export const setQuota: DefineShellCommand = (command, host) => {
  addLimitOptions(command.argument('<path>', 'the znode'), ' <n>')
    .addHelpText(
      'after',
      examples([
        ['setquota -n 1000 /jobs', 'a warning in the log of the servers beyond 1000 znodes'],
        ['setquota -B 1048576 /jobs', 'no more than a mebibyte of data'],
      ]),
    )
    .action((text: string, options: Readonly<Partial<Record<QuotaLimit, string>>>) =>
      host.run(async (context) => {
        const limits = Object.fromEntries(
          Object.entries(options).map(([limit, value]) => [limit, parseLimit(limit, value)]),
        );
        if (Object.keys(limits).length === 0) throw new InvocationFailure('expected a limit: -n, -b, -N or -B');
        const path = context.resolve(text);
        if (path === '/') throw new InvocationFailure('the root has no quota: servers neither count nor enforce it');
        const client = await context.connect();
        if ((await client.exists(path, context.call)) === null) throw new NoNodeError({ operation: 'limit', path });
        await writeLimits(context, client, path, limits);
        return CommandExit.ok;
      }),
    );
};

function parseLimit(limit: string, text: string): number {
  if (/^(?:-1|\d{1,15})$/.test(text)) return Number(text);
  throw new InvocationFailure(`${limit}: expected a number, or -1 for no limit, found "${text}"`);
}
