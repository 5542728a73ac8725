import assert from 'node:assert/strict';
import type { Command } from 'commander';
import { type Candidate, type Question, questionOf } from '../completion/wanted.ts';
import { splitLine } from '../completion/words.ts';
import type { CatalogEntry, DefineCommand } from '../run/command.ts';
import type { CommonWords } from '../run/common-words.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import type { Io } from '../run/io.ts';

/**
 * `complete`: what can stand at the cursor, for the scripts of `completion`. It says nothing rather than something wrong, and
 * nothing at all on standard error: Tab is pressed in the middle of a line.
 */
export const complete: DefineCommand = (command, host) => {
  const program = command.parent;
  assert(program !== null, 'a command is defined below the program');
  command
    .argument('[words...]', 'those behind "meerkat", up to the cursor')
    .option('--line <line>', 'the whole line up to the cursor instead')
    .action((words: string[], { line }: { readonly line?: string }) =>
      host.run((context) => {
        const typed = line === undefined ? words : splitLine(line).slice(1);
        return print(
          context,
          program,
          host.catalog,
          typed.map((word) => withVariables(word, context.io.env)),
        );
      }),
    );
};

async function print(
  context: Context,
  program: Command,
  catalog: readonly CatalogEntry[],
  words: readonly string[],
): Promise<CommandExit> {
  const { report } = context;
  await loadCommands(program, catalog, words);
  const question = questionOf(program, words);
  const { wanted, text, before } = question;
  if (wanted.kind === 'files') {
    await report.line(':files');
    return CommandExit.ok;
  }
  const all = await candidatesFor(context, question, catalog, words).catch(() => []);
  const candidates = all.filter((candidate) => candidate.text.startsWith(text));
  await report.line(wanted.kind === 'znodes' ? ':paths' : ':words');
  for (const candidate of candidates) await report.line(`${before}${candidate.text}\t${candidate.description}`);
  return CommandExit.ok;
}

async function candidatesFor(
  { io }: Context,
  { wanted, text }: Question,
  catalog: readonly CatalogEntry[],
  words: readonly string[],
): Promise<readonly Candidate[]> {
  switch (wanted.kind) {
    case 'candidates':
      return wanted.candidates;
    case 'profiles': {
      const { readProfiles } = await import('../connection/profiles.ts');
      return readProfiles(io.env).profiles.map(({ name, server }) => ({ text: name, description: server }));
    }
    case 'znodes': {
      const { completeZnodes } = await import('../completion/znodes.ts');
      return completeZnodes(await connectionWordsOf(catalog, words), text, io);
    }
    default:
      return [];
  }
}

/** The shells give us words as they were typed: `--server $ZK`. One that is not exported stays as it is. */
function withVariables(word: string, env: Io['env']): string {
  return word.replaceAll(/\$(?:(\w+)|\{(\w+)\})/g, (whole, plain, braced) => env[plain ?? braced] ?? whole);
}

/** In the line that is typed commands stand as words of `--line`, so they are not loaded yet. */
async function loadCommands(
  program: Command,
  catalog: readonly CatalogEntry[],
  words: readonly string[],
): Promise<void> {
  for (const command of program.commands) {
    const entry = catalog.find(({ name }) => name === command.name());
    if (entry === undefined || entry.name === 'complete' || !words.includes(entry.name)) continue;
    // Those that stood among our own words have their options already.
    if (command.options.length > 0 || command.registeredArguments.length > 0) continue;
    (await entry.load())(command, { isShell: false, catalog, run: () => Promise.resolve() });
  }
}

/** The options of the line that say which service is asked. Throws when they are not complete. */
async function connectionWordsOf(catalog: readonly CatalogEntry[], words: readonly string[]): Promise<CommonWords> {
  const { makeProgram } = await import('../program-options.ts');
  const program = makeProgram(catalog).configureOutput({ writeErr: () => {}, outputError: () => {} });
  program.parseOptions(words.slice(0, -1));
  return program.opts<CommonWords>();
}
