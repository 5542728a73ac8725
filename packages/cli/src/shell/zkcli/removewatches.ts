import { type Client, NoWatcherError, type WatchSelection } from '@meerkat/client';
import { examples } from '../../run/command.ts';
import { InvocationFailure } from '../../run/command-failure.ts';
import type { Context } from '../../run/context.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';
import type { WatchList } from '../watch-list.ts';

interface Options {
  readonly children?: boolean;
  readonly data?: boolean;
  readonly persistent?: boolean;
  readonly recursive?: boolean;
  readonly any?: boolean;
  readonly local?: boolean;
}

/** `removewatches`: those of this shell on one path. */
export const removeWatches: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .option('-c, --children', 'those of its list of children (ls -w)')
    .option('-d, --data', 'those of its data (get -w, stat -w)')
    .option('-p, --persistent', 'those of addWatch -m PERSISTENT')
    .option('-r, --recursive', 'those of addWatch -m PERSISTENT_RECURSIVE')
    .option('-a, --any', 'all of them; so it is without these options')
    .option('-l, --local', 'also when no server can be reached')
    .addHelpText('after', examples([['removewatches /app', 'all watches of /app']]))
    .action((text: string, options: Options) =>
      host.run(async (context) => {
        const selection = selectionOf(options);
        await remove(context, host.shell.watches, context.resolve(text), selection, options.local === true);
        return CommandExit.ok;
      }),
    );
};

function selectionOf(options: Options): WatchSelection {
  const chosen = (['children', 'data', 'persistent', 'recursive', 'any'] as const).filter((each) => options[each]);
  if (chosen.length > 1) throw new InvocationFailure(`--${chosen.join(' and --')} exclude each other; --any is all`);
  return chosen[0] ?? 'any';
}

async function remove(
  context: Context,
  watches: WatchList,
  path: string,
  selection: WatchSelection,
  isLocal: boolean,
): Promise<void> {
  const client = await context.connect();
  // Those that stay are streams of the client, which take the watch off the server when they are closed.
  if (selection === 'persistent' || selection === 'recursive') {
    const ended = await watches.end(path, ({ isRecursive }) => isRecursive === (selection === 'recursive'));
    if (ended === 0) throw new NoWatcherError({ operation: 'remove watches of', path });
    return;
  }
  const ended = selection === 'any' ? await watches.end(path, () => true) : 0;
  await removeOthers(context, client, path, selection, isLocal || ended > 0);
}

/** @param isEnough it is no failure that there are no others, or that it cannot be known */
async function removeOthers(
  { call }: Context,
  client: Client,
  path: string,
  selection: WatchSelection,
  isEnough: boolean,
): Promise<void> {
  if (isEnough && client.state !== 'connected') return;
  try {
    await client.removeWatches(path, selection, call);
  } catch (error) {
    if (!(isEnough && error instanceof NoWatcherError)) throw error;
  }
}
