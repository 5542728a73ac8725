import { addSourceOptions } from '../archive/source-words.ts';
import type { UndoWords } from '../archive/words.ts';
import { type DefineCommand, examples } from '../run/command.ts';

/** `undo`: what one txn has changed, back. */
export const undo: DefineCommand = (command, host) => {
  command
    .argument('<zxid>', 'the txn (0x…), as "meerkat history" prints it')
    .option('-n, --dry-run', 'print what would be written, and write nothing')
    .option('--path <path>', 'only this znode and what is below it');
  addSourceOptions(command)
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat undo 0x10000a5b3 --dry-run', 'what would be written back'],
        ['meerkat undo 0x10000a5b3', 'write it'],
        ['meerkat undo 0x10000a5b3 --dir /backup/zk', 'with the past from a backup'],
      ])}`,
    )
    .action((zxid: string, options: UndoWords) =>
      host.run(async (context) => (await import('../archive/run-undo.ts')).runUndo(context, zxid, options)),
    );
};

const EXPLANATION = `What the txn created is deleted, what it deleted is created, data and ACLs get their old
values: all in one transaction, which is refused when a znode was written since. Ephemerals
are not brought back: they belong to sessions.`;
