import { Argument } from 'commander';
import type { LogOptions } from '../archive/words.ts';
import { type DefineCommand, examples } from '../run/command.ts';

/** `log`: transaction logs, of ours and of Apache's servers. */
export const log: DefineCommand = (command, host) => {
  command
    .usage(
      'dump <files...> [--from x] [--to x] [--path /p]\n       meerkat log verify <files...>\n       meerkat log repair <file>',
    )
    .addArgument(new Argument('<action>', 'dump, verify or repair').choices(['dump', 'verify', 'repair']))
    .argument('<files...>', 'log files, or directories that have some: dataDir, dataLogDir, backups')
    .option('--from <moment>', 'dump: from this zxid (0x…) or time on')
    .option('--to <moment>', 'dump: up to this zxid or time')
    .option('--path <path>', 'dump: what touches this znode, or one below it')
    .option('--session <id>', 'dump: what this session (0x…) did')
    .option('--recompute', 'repair: give entries with a wrong checksum the right one, if they are txns')
    .option('--dry-run', 'repair: say what would be done')
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat log dump /var/lib/meerkat', 'every txn, oldest first'],
        ['meerkat log dump log.100000001 --path /app -o ndjson', 'an object a line'],
        ['meerkat log dump /var/lib/meerkat --from 14:05 --to 14:10', 'of five minutes of today'],
        ['meerkat log verify /var/lib/meerkat', 'checksums, order, gaps; exit code 1 when something is wrong'],
        ['meerkat log repair log.100000001', 'cut behind the last whole txn, and keep what was cut'],
      ])}`,
    )
    .action((action: 'dump' | 'verify' | 'repair', files: string[], options: LogOptions) =>
      host.run(async (context) => {
        switch (action) {
          case 'dump':
            return (await import('../archive/log-dump.ts')).dumpLogs(context, files, options);
          case 'verify':
            return (await import('../archive/log-verify.ts')).verifyLogs(context, files);
          case 'repair':
            return (await import('../archive/log-repair.ts')).repairLog(context, files, options);
        }
      }),
    );
};

const EXPLANATION = `Nothing is changed but by repair, which works on the log of a stopped server only. Files of
running servers can be read: the last line may be what is being written.`;
