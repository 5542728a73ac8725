import { examples } from '../../run/command.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `getEphemerals`: what goes when this session ends. */
export const getEphemerals: DefineShellCommand = (command, host) => {
  command
    .argument('[path]', 'only those whose path begins so', '/')
    .addHelpText('after', examples([['getEphemerals /locks', 'what this session holds below /locks']]))
    .action((text: string) =>
      host.run(async (context) => {
        const { report } = context;
        const client = await context.connect();
        const paths = (await client.ephemerals(context.resolve(text), context.call)).toSorted();
        if (report.isForPeople) {
          for (const path of paths) await report.line(path);
          if (paths.length === 0) context.note('this session has no such ephemeral znodes');
          return CommandExit.ok;
        }
        const listing = await report.list<string>([{ name: 'path', value: (path) => path }]);
        for (const path of paths) await listing.add(path);
        await listing.end();
        return CommandExit.ok;
      }),
    );
};
