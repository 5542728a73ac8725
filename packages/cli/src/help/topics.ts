import { stripVTControlCharacters } from 'node:util';
import type { Command } from 'commander';
import { Paint } from '../output/paint.ts';
import { PROCESS_IO } from '../run/io.ts';
import { optionGroups, section } from './layout.ts';
import { tellMistakes } from './mistake.ts';

/** At the end of the help of a command that talks to a service. */
export const COMMON_OPTIONS_LINE =
  '\nOptions of every command (--server, --profile, --auth, -o json …): meerkat help options';

/** `meerkat help [topic]`. Commands that it names must be defined before it is run. */
export function addHelpCommand(program: Command): void {
  tellMistakes(program.command('help'))
    .summary('tell of a command, or of the options of all commands')
    .description('Tell of a command, or of the options that all commands have.')
    .helpGroup('Others:')
    .argument('[topic]', 'a command, or "options"')
    .exitOverride()
    .action((topic: string | undefined) => {
      if (topic === undefined) program.outputHelp();
      else if (topic === 'options') printTopic(describeCommonOptions(program));
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
    'A value is taken from the command line, else from the environment variable in parentheses, else from the profile.',
  ].join('\n\n');
}
