import { hex } from '../../output/stat-columns.ts';
import { examples } from '../../run/command.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `connect`: another session, with the same service or another one. */
export const connect: DefineShellCommand = (command, host) => {
  command
    .argument('[servers]', 'host:port,host:port/chroot; none: those of now')
    .addHelpText(
      'after',
      examples([
        ['connect', 'a new session with the same servers'],
        ['connect zk1:2181,zk2:2181/app', 'another service; "/" is its /app'],
      ]),
    )
    .action((servers: string | undefined) =>
      host.run(async (context) => {
        const { session } = host.shell;
        const client = await session.replace(servers ?? null, context.signal);
        host.shell.goTo('/');
        host.shell.onChange();
        context.note(`connected to ${session.server}, session ${hex(client.session?.id ?? 0n)}`);
        return CommandExit.ok;
      }),
    );
};

/** `close`: the end of the session. */
export const close: DefineShellCommand = (command, host) => {
  command.action(() =>
    host.run(async (context) => {
      const { session } = host.shell;
      const id = session.client?.session?.id ?? null;
      await session.close();
      host.shell.onChange();
      if (id !== null)
        context.note(`session ${hex(id)} is closed: its ephemeral znodes are gone, its watches have ended`);
      return CommandExit.ok;
    }),
  );
};
