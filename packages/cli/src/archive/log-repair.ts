import { type LogRepair, repairLogFile, showZxid } from '@meerkat/server/archive';
import type { Column } from '../output/column.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import { confirm } from '../run/confirmation.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { withArchive } from './archive-failure.ts';
import type { LogOptions } from './words.ts';

const COLUMNS: readonly Column<LogRepair>[] = [
  { name: 'file', value: ({ path }) => path },
  { name: 'last', value: ({ last }) => (last === null ? null : showZxid(last)) },
  { name: 'position', value: ({ position }) => position },
  { name: 'reason', value: ({ reason }) => reason, text: ({ reason }) => reason ?? 'the file is whole' },
  { name: 'bytesBehind', value: ({ bytesBehind }) => bytesBehind },
  { name: 'recomputed', value: ({ recomputed }) => recomputed },
  { name: 'kept', value: ({ kept }) => kept, text: ({ kept }) => kept ?? 'nothing was changed' },
];

/** `log repair`: one file, of a stopped server. */
export function repairLog(context: Context, names: readonly string[], options: LogOptions): Promise<CommandExit> {
  const [path, ...more] = names;
  if (path === undefined || more.length > 0) throw new InvocationFailure('log repair: name one file');
  return withArchive(async () => {
    const recomputes = options.recompute === true;
    const plan = await repairLogFile(path, { recomputes, isDryRun: true });
    if (plan.reason === null || options.dryRun === true) {
      await context.report.one(COLUMNS, plan);
      return CommandExit.ok;
    }
    const what =
      plan.recomputed > 0
        ? `recompute the checksums of ${plan.recomputed} entries, and cut all that follows the last of them`
        : `cut ${path} at position ${plan.position}: ${plan.bytesBehind} bytes behind it are lost to every reader`;
    if (!(await confirm(context, `${what}?`))) {
      context.note('nothing was changed');
      return CommandExit.no;
    }
    await context.report.one(COLUMNS, await repairLogFile(path, { recomputes, isDryRun: false }));
    return CommandExit.ok;
  });
}
