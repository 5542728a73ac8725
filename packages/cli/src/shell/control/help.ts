import { InvocationFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import { SHELL_CATALOG, SHELL_GROUPS } from '../catalog.ts';
import { defineLine } from '../line-command.ts';
import { findEntry, unknownCommand } from '../shell.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `help`: all commands, or one. */
export const help: DefineShellCommand = (command, host) => {
  command.argument('[command]', 'which one').action((name: string | undefined) =>
    host.run(async ({ report, io }) => {
      if (name !== undefined) {
        const entry = findEntry(name);
        if (entry === null) throw new InvocationFailure(unknownCommand(name));
        (await defineLine(entry, io, () => host)).command.outputHelp();
        return CommandExit.ok;
      }
      const width = Math.max(...SHELL_CATALOG.map((entry) => entry.name.length));
      for (const group of SHELL_GROUPS) {
        await report.line(report.paint.bold(group));
        for (const entry of SHELL_CATALOG) {
          if (entry.group === group) await report.line(`  ${entry.name.padEnd(width)}  ${entry.summary}`);
        }
        await report.line('');
      }
      await report.line(HOW_TO_TYPE);
      return CommandExit.ok;
    }),
  );
};

const HOW_TO_TYPE = `"help get" tells of one command. Every line may have -o json (or ndjson, fields), --timeout 5s and -q.
Tab completes commands, options and paths. Quotes and "\\" are as in sh, but a quote inside a word is a character;
"set /a <<END" takes the lines up to END; ";" and a blank separate commands; "#" begins a comment.
Ctrl-C stops a command or clears the line, Ctrl-D leaves.`;
