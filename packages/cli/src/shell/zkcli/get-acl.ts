import type { Acl } from '@meerkat/client';
import { formatPerms } from '@meerkat/client';
import type { Column } from '../../output/column.ts';
import { STAT_COLUMNS } from '../../output/stat-columns.ts';
import { examples } from '../../run/command.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `getAcl`: in zkCli's form. "acl" reports the same in one line. */
export const getAcl: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .option('-s, --stat', 'print its Stat, too')
    .addHelpText('after', examples([['getAcl /app', 'two lines an entry: who, and the permissions']]))
    .action((text: string, options: { readonly stat?: boolean }) =>
      host.run(async (context) => {
        const { report } = context;
        const client = await context.connect();
        const { acl, stat } = await client.getAcl(context.resolve(text), context.call);
        if (report.isForPeople) {
          for (const { scheme, id, perms } of acl) await report.line(`'${scheme},'${id}\n: ${formatPerms(perms)}`);
          if (options.stat === true) await report.one(STAT_COLUMNS, stat);
          return CommandExit.ok;
        }
        const listing = await report.list(COLUMNS);
        for (const entry of acl) await listing.add(entry);
        await listing.end();
        return CommandExit.ok;
      }),
    );
};

const COLUMNS: readonly Column<Acl>[] = [
  { name: 'scheme', value: ({ scheme }) => scheme },
  { name: 'id', value: ({ id }) => id },
  { name: 'perms', value: ({ perms }) => formatPerms(perms) },
];
