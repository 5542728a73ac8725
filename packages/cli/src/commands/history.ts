import { addSourceOptions } from '../archive/source-words.ts';
import type { HistoryWords } from '../archive/words.ts';
import { type DefineCommand, examples } from '../run/command.ts';

/** `history`: who wrote what when. */
export const history: DefineCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .option('-r, --recursive', 'what is below it as well')
    .option('--from <moment>', 'from this zxid (0x…) or time on')
    .option('--to <moment>', 'up to this zxid or time')
    .option('-d, --diff', 'the lines that differ, behind each change')
    .option('--audit <file>', 'an audit log: it says the addresses and users of sessions that are gone');
  addSourceOptions(command)
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat history /app/config', 'from the admin port of the service'],
        ['meerkat history /app -r --from 14:00 --dir /backup/zk', 'of a tree, from a backup'],
        ['meerkat history /app/config -d', 'with what has changed in the text'],
        ['meerkat history /app/config --audit /var/log/zookeeper/audit.log', 'with users and addresses'],
      ])}`,
    )
    .action((path: string, options: HistoryWords) =>
      host.run(async (context) => (await import('../archive/run-history.ts')).runHistory(context, path, options)),
    );
};

const EXPLANATION = `It reaches back as far as the logs do: autopurge removes old ones, a backup with --follow
keeps them. The log has sessions, not addresses; those of connected clients are asked of a
running server.`;
