import { readTxnEffects } from '@meerkat/server/archive';
import type { Column } from '../output/column.ts';
import { hex, localTime } from '../output/stat-columns.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { withArchive } from './archive-failure.ts';
import { momentOf } from './moment-words.ts';
import { openSource } from './source.ts';
import { describeAcl, describeData, describeRecord } from './txn-text.ts';
import { type UndoStep, undoSteps, writeUndo } from './undo-steps.ts';
import type { UndoWords } from './words.ts';

const COLUMNS: readonly Column<UndoStep>[] = [
  { name: 'operation', value: ({ kind }) => kind },
  { name: 'path', value: ({ path }) => path },
  { name: 'value', value: shownValue },
];

function shownValue(step: UndoStep): string {
  switch (step.kind) {
    case 'delete':
      return '';
    case 'acl':
      return describeAcl(step.to.acl);
    case 'create':
    case 'set':
      return describeData(step.to.data);
  }
}

export function runUndo(context: Context, text: string, words: UndoWords): Promise<CommandExit> {
  const moment = momentOf(text, 'undo');
  if (moment?.kind !== 'zxid')
    throw new InvocationFailure(`undo: expected a zxid such as 0x10000a5b3, found "${text}"`);
  return withArchive(async () => {
    const files = await openSource(context, words);
    using progress = context.progress();
    const effects = await readTxnEffects(files, {
      zxid: moment.zxid,
      onWarning: (warning) => context.note(warning),
      onProgress: (what) => progress.update(() => what),
      signal: context.signal,
    });
    await files.close();
    progress.clear();
    const { timeMs, session, record } = effects;
    context.note(`${localTime(timeMs)} session ${hex(session)}: ${describeRecord(record)}`);
    const steps = undoSteps(effects, words.path, (text) => context.note(text));
    if (steps.length === 0) {
      context.note(`zxid ${text} has changed nothing that can be written back`);
      return CommandExit.no;
    }
    if (words.dryRun !== true) await writeUndo(await context.connect(), steps, moment.zxid, context.call);
    const list = await context.report.list(COLUMNS);
    for (const step of steps) await list.add(step);
    await list.end();
    return CommandExit.ok;
  });
}
