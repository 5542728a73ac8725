import { Argument } from 'commander';
import type { SnapshotOptions } from '../archive/words.ts';
import { type DefineCommand, examples } from '../run/command.ts';

const ACTIONS = ['cat', 'summary', 'diff', 'verify'] as const;

/** `snapshot`: snapshots, of ours and of Apache's servers, packed ones too. */
export const snapshot: DefineCommand = (command, host) => {
  command
    .usage(
      'cat <file> [--path /p] [-s]\n       meerkat snapshot summary <file> [--depth n]\n       meerkat snapshot diff <old> <new>\n       meerkat snapshot verify <files...>',
    )
    .addArgument(new Argument('<action>', ACTIONS.join(', ')).choices(ACTIONS))
    .argument('<files...>', 'snapshot files, also .gz and .snappy, or directories that have some')
    .option('--path <path>', 'cat, summary, diff: this znode and what is below it')
    .option('-s, --stat', 'cat: the Stat and ACL of each as well')
    .option('--sessions', 'cat: the sessions instead of the znodes')
    .option('--depth <levels>', 'summary: so many levels below --path (default 1)')
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat snapshot cat snapshot.100000004', 'each znode and its data'],
        ['meerkat snapshot cat snapshot.1f.gz -o ndjson', 'an object a line, with everything'],
        ['meerkat snapshot cat snapshot.1f --sessions', 'who had a session'],
        ['meerkat snapshot summary snapshot.1f --depth 2', 'how many znodes and bytes below each'],
        ['meerkat snapshot diff snapshot.1f snapshot.2e', 'what has come, gone and changed'],
        ['meerkat snapshot verify /var/lib/meerkat', 'checksums of all of them; exit code 1 when one is wrong'],
      ])}`,
    )
    .action((action: (typeof ACTIONS)[number], files: string[], options: SnapshotOptions) =>
      host.run(async (context) => {
        switch (action) {
          case 'cat':
            return (await import('../archive/snapshot-cat.ts')).catSnapshot(context, files, options);
          case 'summary':
            return (await import('../archive/snapshot-summary.ts')).sumUpSnapshot(context, files, options);
          case 'diff':
            return (await import('../archive/snapshot-diff.ts')).diffSnapshots(context, files, options);
          case 'verify':
            return (await import('../archive/snapshot-verify.ts')).verifySnapshots(context, files);
        }
      }),
    );
};

const EXPLANATION = `A snapshot is written while the server is running: it is the state of no single moment
until the log after it is replayed. "meerkat restore" and "--at" do that.`;
