import { InvocationFailure } from '../../run/command-failure.ts';
import { CommandExit } from '../../run/exit-code.ts';
import { defineLine } from '../line-command.ts';
import type { DefineShellCommand } from '../shell-command.ts';

/** `help`: all commands, or one. */
export const help: DefineShellCommand = (command, host) => {
  command.argument('[command]', 'which one').action((name: string | undefined) =>
    host.run(async ({ report, io }) => {
      const { commands } = host.shell;
      if (name !== undefined) {
        const entry = commands.find(name);
        if (entry === null) throw new InvocationFailure(commands.describeUnknown(name));
        (await defineLine(entry, io, () => host)).command.outputHelp();
        return CommandExit.ok;
      }
      const width = Math.max(...commands.entries.map((entry) => entry.name.length));
      for (const group of commands.groups) {
        await report.line(report.paint.bold(group));
        for (const entry of commands.entries) {
          if (entry.group === group) await report.line(`  ${entry.name.padEnd(width)}  ${entry.summary}`);
        }
        await report.line('');
      }
      await report.line(HOW_TO_TYPE);
      return CommandExit.ok;
    }),
  );
};

const HOW_TO_TYPE = `"help get" explains one command. Every line may have -o json (or ndjson, fields), --timeout 5s and -q.
Tab completes commands, options and paths. Quotes and "\\" are as in sh, but a quote inside a word is a character;
"set /a <<END" takes the lines up to END; ";" and a blank separate commands; "#" begins a comment.
Ctrl-C stops a command or clears the line, Ctrl-D leaves.`;
