import { Command } from 'commander';
import { HELP_LAYOUT } from '../help/layout.ts';
import { explainMistakes } from '../help/mistake.ts';
import type { Io } from '../run/io.ts';
import type { ShellCatalogEntry, ShellCommandHost } from './shell-command.ts';

/** A command of the shell with its options, ready to take the words of a line, and the options that all lines have. */
export interface LineCommand {
  readonly program: Command;
  readonly command: Command;
}

/**
 * @param makeHost is given the program, which has the options of the line once it is parsed
 * @param prefix of messages about mistakes
 */
export async function defineLine(
  entry: ShellCatalogEntry,
  io: Io,
  makeHost: (program: Command) => ShellCommandHost,
  prefix = '',
): Promise<LineCommand> {
  // The name of the program does not stand before that of the command; without any, commander takes another.
  const program = addLineOptions(new Command(' '))
    .exitOverride()
    .helpCommand(false)
    .helpOption('-h, --help', 'print this help')
    .configureOutput({
      // Examples are written for the command line; here they are typed without its name.
      writeOut: (text) => io.stdout.write(text.replaceAll(/^( +)meerkat /gm, '$1')),
      writeErr: (text) => io.stderr.write(`${prefix}${text}`),
    })
    .configureHelp({
      ...HELP_LAYOUT,
      commandUsage: (command) => `${command.name()} ${command.usage()}`,
    });
  const command = explainMistakes(program.command(entry.name))
    .summary(entry.summary)
    .description(`${entry.summary[0]?.toUpperCase()}${entry.summary.slice(1)}.`)
    .exitOverride();
  (await entry.load())(command, makeHost(program));
  return { program, command };
}

/** Those of the command line that a line may have as well. */
export function addLineOptions(program: Command): Command {
  return program
    .option('-o, --output <format>', 'table, json, ndjson or fields')
    .option('-q, --quiet', 'no notes and no progress')
    .option('--no-color', 'no colours')
    .option('--timeout <time>', 'how long one request may take: 500ms, 10s');
}

/** Long options with one dash, as zkCli has them (`-members`), get their second. */
export function withTwoDashes({ command }: LineCommand, words: readonly string[]): readonly string[] {
  const end = words.indexOf('--');
  return words.map((word, i) => {
    const isMeant = /^-[a-z]{2,}$/.test(word) && (end === -1 || i < end);
    return isMeant && command.options.some(({ long }) => long === `-${word}`) ? `-${word}` : word;
  });
}
