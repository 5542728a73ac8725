import type { ClientInfo } from '@meerkat/client';
import type { Column } from '../../output/column.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `whoami`: the identities of this session. */
export const whoAmI: DefineShellCommand = (command, host) => {
  command.action(() =>
    host.run(async (context) => {
      const { report } = context;
      const client = await context.connect();
      const identities = await client.whoAmI(context.call);
      if (report.isForPeople) {
        await report.line(report.paint.bold('Auth scheme: User'));
        for (const { scheme, user } of identities) await report.line(`${scheme}: ${user}`);
        return CommandExit.ok;
      }
      const listing = await report.list(COLUMNS);
      for (const identity of identities) await listing.add(identity);
      await listing.end();
      return CommandExit.ok;
    }),
  );
};

const COLUMNS: readonly Column<ClientInfo>[] = [
  { name: 'scheme', value: ({ scheme }) => scheme },
  { name: 'user', value: ({ user }) => user },
];
