import type { RestoreWords } from '../archive/words.ts';
import { type DefineCommand, examples } from '../run/command.ts';

/** `restore`: a directory to start a server from. */
export const restore: DefineCommand = (command, host) => {
  command
    .argument('<directory>', 'a backup, or the dataDir of a server')
    .option('--to <moment>', 'the zxid (0x…) or time; without it, as new as there is')
    .option('--into <directory>', 'a new dataDir; it gets one snapshot, and nothing else')
    .option('--log-dir <directory>', 'the dataLogDir of the server, if that is another one')
    .option('--check', 'restore in memory, write nothing')
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat restore /backup/zk --into /var/lib/meerkat-new', 'all there is'],
        ['meerkat restore /backup/zk --to 14:05 --into /tmp/before', 'as it was at five past two'],
        ['meerkat restore /backup/zk --to 0x10000a5b3 --into /tmp/before', 'as it was behind this txn'],
        ['meerkat restore /backup/zk --check', 'whether the backup is good'],
      ])}`,
    )
    .action((directory: string, options: RestoreWords) =>
      host.run(async (context) => (await import('../archive/run-restore.ts')).runRestore(context, directory, options)),
    );
};

const EXPLANATION = `What is written is read back and compared. To put it in place: stop all servers of the
ensemble, move the version-2 directories of all of them away, give each this one, start them.
Sessions are restored too, and expire unless their clients come back. A client that has seen
a later zxid refuses the restored service until it is restarted.`;
