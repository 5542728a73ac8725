import type { Column } from '../../output/column.ts';
import { examples } from '../../run/command.ts';
import { InvocationFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import type { DefineShellCommand } from '../shell-command.ts';
import { scan } from '../words.ts';

/** As many as zkCli lists, this one included. */
const LISTED = 11;

/** `history`: the latest lines of this shell. */
export const history: DefineShellCommand = (command, host) => {
  command.argument('[count]', 'how many', String(LISTED)).action((text: string) =>
    host.run(async ({ report }) => {
      const count = parseNumber(text, 'history');
      const { lines } = host.shell;
      const first = Math.max(0, lines.length - count);
      if (report.isForPeople) {
        for (const [i, line] of lines.slice(first).entries()) await report.line(`${first + i} - ${line}`);
        return CommandExit.ok;
      }
      const listing = await report.list(COLUMNS);
      for (const [i, line] of lines.slice(first).entries()) await listing.add({ number: first + i, line });
      await listing.end();
      return CommandExit.ok;
    }),
  );
};

const COLUMNS: readonly Column<{ readonly number: number; readonly line: string }>[] = [
  { name: 'number', value: ({ number }) => number },
  { name: 'line', value: ({ line }) => line },
];

/** `redo`: a line of this shell, again. */
export const redo: DefineShellCommand = (command, host) => {
  command
    .argument('<number>', 'of the line, as "history" lists it')
    .addHelpText('after', examples([['redo 3', 'line 3 once more']]))
    .action((text: string) =>
      host.run(async ({ report, signal }) => {
        const number = parseNumber(text, 'redo');
        const { lines } = host.shell;
        const line = lines[number];
        // The last one is this redo itself.
        if (line === undefined || number === lines.length - 1) {
          throw new InvocationFailure(`Command index out of range: there are lines 0 to ${lines.length - 2}`);
        }
        if (report.isForPeople) await report.line(report.paint.dim(line));
        lines[lines.length - 1] = line;
        let exitCode: number = CommandExit.ok;
        for (const { words } of scan(line).commands) exitCode = await host.shell.run(words, '', signal);
        return exitCode;
      }),
    );
};

function parseNumber(text: string, command: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvocationFailure(`${command}: expected a number, found "${text}"`);
  return Number(text);
}
