import { NoNodeError } from '@meerkat/client';
import { examples } from '../../run/command.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `cd`: to a znode that is there. */
export const cd: DefineShellCommand = (command, host) => {
  command
    .argument('[path]', 'where to; - is where you were before', '/')
    .addHelpText(
      'after',
      examples([
        ['cd /app', 'from now on "get config" reads /app/config'],
        ['cd ..', 'to the parent'],
        ['cd -', 'back'],
      ]),
    )
    .action((text: string) =>
      host.run(async (context) => {
        const path = text === '-' ? host.shell.previousPath : context.resolve(text);
        const client = await context.connect();
        if ((await client.exists(path, context.call)) === null) throw new NoNodeError({ operation: 'cd to', path });
        host.shell.goTo(path);
        return CommandExit.ok;
      }),
    );
};

/** `pwd`: the current znode. */
export const pwd: DefineShellCommand = (command, host) => {
  command.action(() =>
    host.run(async ({ report }) => {
      const path = host.shell.currentPath;
      await (report.isForPeople ? report.line(path) : report.one([{ name: 'path', value: (each) => each }], path));
      return CommandExit.ok;
    }),
  );
};
