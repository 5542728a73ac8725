import { type Command, CommanderError } from 'commander';
import { describe, expect, test, vi } from 'vitest';
import { CATALOG } from './catalog.ts';
import { splitLine } from './completion/words.ts';
import { describeExitCodes } from './help/topics.ts';
import { parseCommand } from './program.ts';
import { makeProgram, prepare } from './program-options.ts';
import type { CommandHost } from './run/command.ts';
import { type CatalogEntry, COMMAND_GROUPS } from './run/command.ts';
import { CommandExit, EXIT_MEANINGS } from './run/exit-code.ts';
import { PROCESS_IO } from './run/io.ts';

/** What summaries may begin with: each says what happens to something. */
const VERBS = new Set(
  `change compare copy create delete edit find import export list print read replace run search set show wait watch
  draw count open move load write check save keep look sum limit carry work`.split(/\s+/),
);

/** Knows whether a command was run, and runs none. */
class RecordingHost implements CommandHost {
  readonly catalog = CATALOG;
  readonly isShell = false;
  wasRun = false;

  run(): Promise<void> {
    this.wasRun = true;
    return Promise.resolve();
  }
}

interface Defined {
  readonly program: Command;
  readonly command: Command;
  readonly host: RecordingHost;
  /** What was printed. */
  readonly output: () => string;
}

async function define(entry: CatalogEntry): Promise<Defined> {
  const program = makeProgram(CATALOG);
  const host = new RecordingHost();
  let output = '';
  const write = (text: string): void => {
    output += text;
  };
  program.configureOutput({ writeOut: write, writeErr: write });
  const command = prepare(program.command(entry.name), entry);
  command.configureOutput({ writeOut: write, writeErr: write });
  (await entry.load())(command, host);
  return { program, command, host, output: () => output };
}

async function helpOf(entry: CatalogEntry): Promise<string> {
  const { command, output } = await define(entry);
  command.outputHelp();
  return output();
}

/** The commands of ours in the examples of a help: `job=$(meerkat create …) | …` has one. */
function examplesOf(help: string): string[] {
  const [, examples = ''] = help.split('\nExamples:\n');
  return examples
    .split('\n')
    .filter((line) => line.startsWith('  '))
    .flatMap((line) => {
      const [typed = ''] = line.trim().split(/ {2,}/);
      return [...typed.matchAll(/(?:^|[|($;] ?|&& |\w=\S+ )meerkat ([^|]*)/g)].map((match) =>
        withoutShell(match[1] ?? ''),
      );
    });
}

/** Without what is the shell's: redirections, the end of a substitution, what follows. */
function withoutShell(text: string): string {
  return text
    .replace(/ *(?:[<>&;]| \d>).*$/, '')
    .replace(/\)"?$/, '')
    .trim();
}

const VISIBLE = CATALOG.filter(({ isHidden }) => isHidden !== true);

describe.each(VISIBLE.map((entry) => [entry.name, entry] as const))('meerkat %s', (name, entry) => {
  test('has a summary that begins with a verb', () => {
    expect(COMMAND_GROUPS).toContain(entry.group);
    expect(entry.summary).toMatch(/^[a-z][^.]*$/);
    expect(entry.summary.length).toBeLessThan(64);
    expect(VERBS).toContain(entry.summary.split(' ')[0]);
  });

  test('has a help with examples that can be typed', async () => {
    const help = await helpOf(entry);
    const examples = examplesOf(help);
    expect(examples.length, help).toBeGreaterThanOrEqual(2);
    for (const example of examples) {
      const words = splitLine(example);
      const found = words.map((word) => CATALOG.find((candidate) => candidate.name === word));
      const entryOfExample = found.find((candidate) => candidate !== undefined) ?? entry;
      const { program, host, output } = await define(entryOfExample);
      try {
        await program.parseAsync([...words], { from: 'user' });
      } catch (error) {
        if (!(error instanceof CommanderError)) throw error;
        expect.soft(output(), `meerkat ${example}`).toBe('');
      }
      expect.soft(host.wasRun, `meerkat ${example}`).toBe(true);
    }
  });

  test('explains each of its arguments and options', async () => {
    const { command } = await define(entry);
    for (const argument of command.registeredArguments) expect(argument.description, argument.name()).not.toBe('');
    for (const option of command.options) expect(option.description, option.flags).not.toBe('');
  });

  test('has no option that all commands have already', async () => {
    const { program, command } = await define(entry);
    const common = program.options.flatMap(({ short, long }) => [short, long]);
    for (const { short, long } of command.options) {
      if (short !== undefined && short !== null) expect([...common, '-h']).not.toContain(short);
      if (long !== undefined && long !== null) expect([...common, '--help']).not.toContain(long);
    }
  });

  test('reports an option that it has not, with its usage', async () => {
    const { program, command, host, output } = await define(entry);
    command.configureOutput({ outputError: command.parent?.configureOutput().outputError ?? (() => {}) });
    const error: unknown = await program
      .parseAsync([name, '--frobnicate'], { from: 'user' })
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'commander.unknownOption' });
    expect(output()).toContain("unknown option '--frobnicate'");
    expect(host.wasRun).toBe(false);
  });
});

describe('meerkat', () => {
  test('lists its commands in groups, those of one group together', async () => {
    const program = makeProgram(CATALOG);
    for (const entry of CATALOG) prepare(program.command(entry.name, { hidden: entry.isHidden === true }), entry);
    const help = program.helpInformation();
    const titles = [...help.matchAll(/^(\w+:)$/gm)].map((match) => match[1]);
    expect(titles).toEqual(COMMAND_GROUPS.filter((group) => VISIBLE.some((entry) => entry.group === group)));
    for (const { name, summary } of VISIBLE) expect(help).toMatch(new RegExp(`^ {2}${name} +${summary}$`, 'm'));
    expect(help).not.toMatch(/^ {2}complete /m);
  });

  test.each([
    [['nix'], "meerkat: unknown command 'nix'"],
    [['lss'], 'did you mean ls?'],
    [
      ['ls', '--recursiv'],
      'did you mean --recursive?\nusage: meerkat ls [options] [paths...]\n"meerkat ls --help" says more',
    ],
    [['ls', '--serve', 'x'], 'did you mean --server?'],
    [['ls', '--server'], "option '--server <hosts>' argument missing"],
    [['get'], "meerkat get: missing required argument 'paths'\nusage: meerkat get"],
    [['completion', 'tcsh'], 'Allowed choices are bash, zsh, fish'],
    [['help', 'nix'], "there is no command and no topic 'nix'"],
  ])('answers %j with what to do, and exits with 2', async (args, words) => {
    const written: string[] = [];
    const write = process.stderr.write;
    process.stderr.write = (chunk: string | Uint8Array) => written.push(String(chunk)) > 0;
    try {
      expect(await parseCommand(args, PROCESS_IO)).toBe(2);
    } finally {
      process.stderr.write = write;
    }
    expect(written.join('')).toContain(words);
    expect(written.join('')).toMatch(/"meerkat .*(--help|options)" (says more|lists)/);
  });
});

describe('help', () => {
  test('reports the meaning of every exit code', () => {
    const text = describeExitCodes();
    for (const [name, code] of Object.entries(CommandExit)) {
      expect(text).toContain(`${code}  ${EXIT_MEANINGS[name as keyof typeof CommandExit]}\n`);
    }
  });

  test('knows what a command is called elsewhere', async () => {
    const said: string[] = [];
    const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
    try {
      expect(await parseCommand(['deleteall', '/x'])).toBe(CommandExit.invocation);
    } finally {
      spy.mockRestore();
    }
    expect(said.join('')).toMatch(/unknown command 'deleteall': "meerkat rm -r" does that/);
  });
});
