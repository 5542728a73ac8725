import { Option } from 'commander';
import { examples } from '../../run/command.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

const MODES = ['PERSISTENT', 'PERSISTENT_RECURSIVE'] as const;

/** `addWatch`: a watch that stays. */
export const addWatch: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode, which may be missing')
    .addOption(
      new Option('-m, --mode <mode>', 'PERSISTENT: the znode and its list of children; PERSISTENT_RECURSIVE: all below')
        .choices(MODES)
        .default('PERSISTENT_RECURSIVE' satisfies (typeof MODES)[number]),
    )
    .addHelpText(
      'after',
      examples([
        ['addWatch /app', 'every change of /app and below'],
        ['addWatch -m PERSISTENT /app', 'of /app alone, and of who its children are'],
        ['removewatches /app', 'no more'],
      ]),
    )
    .action((text: string, { mode }: { readonly mode: (typeof MODES)[number] }) =>
      host.run(async (context) => {
        const client = await context.connect();
        await host.shell.watches.add(client, context.resolve(text), mode === 'PERSISTENT_RECURSIVE');
        return CommandExit.ok;
      }),
    );
};
