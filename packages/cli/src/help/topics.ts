import { stripVTControlCharacters } from 'node:util';
import type { Command } from 'commander';
import type { FaultEntry } from '../doctor/fault-entry.ts';
import { Paint } from '../output/paint.ts';
import { CommandExit, EXIT_MEANINGS } from '../run/exit-code.ts';
import { PROCESS_IO } from '../run/io.ts';
import { optionGroups, section } from './layout.ts';
import { explainMistakes } from './mistake.ts';

/** At the end of the help of a command that talks to a service. */
export const COMMON_OPTIONS_LINE =
  '\nOptions of every command (--server, --profile, --auth, -o json …): meerkat help options';

/** `meerkat help [topic]`. Commands that it names must be defined before it is run. */
export function addHelpCommand(program: Command): void {
  explainMistakes(program.command('help'))
    .summary('explain a command, the options of all, output or exit codes')
    .description(
      'Explain a command, the options that all commands have, output formats, exit codes, or what doctor finds.',
    )
    .helpGroup('Others:')
    .argument('[topic]', 'a command, or "options", "output", "exit-codes", "faults"')
    .exitOverride()
    .action(async (topic: string | undefined) => {
      if (topic === undefined) program.outputHelp();
      else if (topic === 'options') printTopic(describeCommonOptions(program));
      else if (topic === 'output') printTopic(OUTPUT);
      else if (topic === 'exit-codes') printTopic(describeExitCodes());
      else if (topic === 'faults') printTopic(describeFaults((await import('../doctor/faults.ts')).FAULTS));
      else helpOf(program, topic).outputHelp();
    });
}

function printTopic(text: string): void {
  const isPainted = Paint.for(PROCESS_IO.stdout, PROCESS_IO, true).isOn;
  PROCESS_IO.stdout.write(`${isPainted ? text : stripVTControlCharacters(text)}\n`);
}

function helpOf(program: Command, name: string): Command {
  const command = program.commands.find((candidate) => candidate.name() === name);
  if (command !== undefined) return command;
  program.error(`error: there is no command and no topic '${name}'`);
}

/** The options that stand before or behind every command. */
export function describeCommonOptions(program: Command): string {
  const helper = program.createHelp();
  helper.prepareContext({ helpWidth: process.stdout.columns ?? 80 });
  const groups = optionGroups(program, helper).filter(([title]) => title !== 'Options:');
  const width = Math.max(...groups.flatMap(([, items]) => items.map(([term]) => term.length)));
  return [
    'Options of every command that talks to a service; they may stand before it or behind it.',
    ...groups.map(([title, items]) => section(title, items, width, helper)),
    'A value is taken from the command line, else from the environment variable in parentheses, else from the profile. With\n' +
      '--profile the environment is not asked, and with --server no profile is.',
  ].join('\n\n');
}

/** `-o`, with what each format is for. */
const OUTPUT = `How commands print what they have found (-o, or MEERKAT_OUTPUT):

  table   for people; may change from version to version
  json    one value: an array of what was found, or one object
  ndjson  an object a line, each as soon as it is known
  fields  a line each, with tabs between the fields, which come in the order of the JSON; a tab, line feed, carriage
          return or backslash inside a field is \\t, \\n, \\r or \\\\

Notes, questions, progress and failures go to standard error; -q keeps notes and progress back. With -o json and ndjson
a failure is an object with "code", "exitCode", "path" and "message".

Examples:
  meerkat ls -s /app -o fields | cut -f 1,8     path and version
  meerkat ls -s /app -o json                    the names of the fields`;

/** What scripts may rely on. */
export function describeExitCodes(): string {
  const lines = Object.entries(CommandExit).map(([name, code]) => {
    return `  ${String(code).padStart(3)}  ${EXIT_MEANINGS[name as keyof typeof CommandExit]}`;
  });
  return [
    'How commands end. A number keeps its meaning from version to version.',
    lines.join('\n'),
    '"lock", "elect" and "create --while" end as the command does that they run, if it ran to its end.',
  ].join('\n\n');
}

/** What `meerkat doctor` can name, by the question that it answers. */
export function describeFaults(faults: Readonly<Record<string, FaultEntry>>): string {
  const entries = Object.entries(faults);
  const questions = [...new Set(entries.map(([, { about }]) => about))];
  const sections = questions.map((question) => {
    const lines = entries
      .filter(([, { about }]) => about === question)
      .map(
        ([name, { meaning, advice, isNote }]) =>
          `  ${name}${isNote === true ? ' (note)' : ''}\n      ${meaning}: ${advice}`,
      );
    return `${question}:\n${lines.join('\n')}`;
  });
  return ['What "meerkat doctor" finds, and what to do. Names stay; a note breaks nothing.', ...sections].join('\n\n');
}
