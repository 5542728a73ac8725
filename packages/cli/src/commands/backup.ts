import { addSourceOptions } from '../archive/source-words.ts';
import type { BackupWords } from '../archive/words.ts';
import { type DefineCommand, examples } from '../run/command.ts';

/** `backup`: snapshots and every txn behind them, in another directory. */
export const backup: DefineCommand = (command, host) => {
  command.option('--to <directory>', 'where the backup is, or is to be; a later run copies what is new');
  addSourceOptions(command)
    .option('-f, --follow', 'keep running: each txn is in the backup within a second, until Ctrl-C')
    .option('--snapshot-every <time>', 'with --follow: copy a newer snapshot after so long (default 1h)')
    .option('--keep <snapshots>', 'remove all but so many snapshots, and the log before them (default: keep all)')
    .option('--keep-for <time>', 'remove what is older, but for what restoring to that time takes: 7d')
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat backup --to /backup/zk --server zk1,zk2,zk3', 'from the first that answers, over its admin port'],
        ['meerkat backup --to /backup/zk --dir /var/lib/zookeeper', 'of the directory of a server on this machine'],
        ['meerkat backup --to /backup/zk --admin zk1:8080 --follow --keep-for 7d', 'continuously, a week of states'],
        ['meerkat restore /backup/zk --check', 'whether it can be restored'],
      ])}`,
    )
    .action((options: BackupWords) =>
      host.run(async (context) => (await import('../archive/run-backup.ts')).runBackup(context, options)),
    );
};

const EXPLANATION = `The admin port wants credentials with all permissions of the root (--auth), as for its
snapshot command; while the root is open to all, none. A backup may be ended or killed at
any moment, and restores to any zxid from its oldest snapshot on. Apache's servers are backed
up by their directories.`;
