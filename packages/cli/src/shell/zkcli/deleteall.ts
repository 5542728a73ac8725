import type { DeleteProgress } from '@meerkat/client';
import { count } from '../../output/stat-columns.ts';
import { examples } from '../../run/command.ts';
import { InvocationFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import { describePartialDeletion } from '../../tree/partial-deletion.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `deleteall`: a znode and everything below it, without a question, as in zkCli. "rm -r" asks. */
export const deleteAll: DefineShellCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .option('-b, --batch <n>', 'of no account here: deletions are sent as the server answers')
    .addHelpText('after', examples([['deleteall /jobs/old', 'children before parents; Ctrl-C stops it half way']]))
    .action((text: string, options: { readonly batch?: string }) =>
      host.run(async (context) => {
        checkBatch(options.batch);
        const path = context.resolve(text);
        const client = await context.connect();
        using progress = context.progress();
        let last: DeleteProgress = { deleted: 0, found: 0 };
        try {
          await client.deleteRecursive(path, {
            ...context.call,
            onProgress: (state) => {
              last = state;
              progress.update(() => `${count(state.deleted)} znodes deleted`);
            },
          });
        } finally {
          progress.clear();
          if (context.signal.aborted) context.note(`stopped: ${describePartialDeletion(path, last)}`);
        }
        return CommandExit.ok;
      }),
    );
};

/** zkCli takes any number, and fingers know it. */
function checkBatch(text: string | undefined): void {
  if (text === undefined || /^[1-9]\d{0,8}$/.test(text)) return;
  throw new InvocationFailure(`--batch: expected a number from 1, found "${text}"`);
}
