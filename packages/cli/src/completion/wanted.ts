import type { Argument, Command, Option } from 'commander';
import { FORMATS } from '../output/report.ts';

/** What can stand at the cursor when Tab is pressed. */
export type Wanted =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'files' }
  | { readonly kind: 'candidates'; readonly candidates: readonly Candidate[] }
  | { readonly kind: 'profiles' }
  /** A path, or a location in another service. */
  | { readonly kind: 'znodes' };

export interface Candidate {
  readonly text: string;
  readonly description: string;
}

/** The word that is being typed. */
export interface Question {
  readonly wanted: Wanted;
  /** What of the word is to be completed: behind `--output=` the value. */
  readonly text: string;
  /** What stands before it in the same word. */
  readonly before: string;
}

const NOTHING: Wanted = { kind: 'nothing' };
const ZNODES: Wanted = { kind: 'znodes' };
const FILES: Wanted = { kind: 'files' };

/**
 * Finds out what is wanted.
 *
 * @param program with all its commands; the one that is typed has been given its options
 * @param words those behind `meerkat`, the last one is being typed
 */
export function questionOf(program: Command, words: readonly string[]): Question {
  const typed = words.at(-1) ?? '';
  const { command, awaiting, argumentCount, isBehindDashes } = readWords(program, words.slice(0, -1));
  const ask = (wanted: Wanted, text = typed, before = ''): Question => ({ wanted, text, before });
  if (awaiting !== null) return ask(valuesOf(awaiting));
  if (isBehindDashes) return ask(FILES);
  const assignment = /^(--[^=]+)=(.*)$/s.exec(typed);
  if (assignment !== null) {
    const [, name = '', value = ''] = assignment;
    const option = optionsOf(program, command).find(({ long }) => long === name);
    return ask(option === undefined ? NOTHING : valuesOf(option), value, `${name}=`);
  }
  if (typed.startsWith('-')) return ask(list(optionCandidates(program, command)));
  if (command === null) return ask(list(commandCandidates(program)));
  const { registeredArguments } = command;
  const last = registeredArguments.at(-1);
  const argument = registeredArguments[argumentCount] ?? (last?.variadic === true ? last : undefined);
  return ask(argument === undefined ? NOTHING : argumentOf(program, command, argument, typed));
}

interface Read {
  readonly command: Command | null;
  /** An option whose value is the next word. */
  readonly awaiting: Option | null;
  /** Arguments of the command so far. */
  readonly argumentCount: number;
  readonly isBehindDashes: boolean;
}

function readWords(program: Command, words: readonly string[]): Read {
  let command: Command | null = null;
  let awaiting: Option | null = null;
  let argumentCount = 0;
  for (const word of words) {
    if (awaiting !== null) awaiting = null;
    else if (word === '--') return { command, awaiting, argumentCount, isBehindDashes: true };
    else if (word.startsWith('-') && word !== '-') awaiting = awaitingOf(optionsOf(program, command), word);
    else if (command === null) {
      const found = program.commands.find((candidate) => candidate.name() === word);
      // A command that is not there has no options and no arguments.
      if (found === undefined)
        return { command: program.createCommand(word), awaiting, argumentCount, isBehindDashes: false };
      command = found;
    } else argumentCount++;
  }
  return { command, awaiting, argumentCount, isBehindDashes: false };
}

/** @returns the option if its value is still to come */
function awaitingOf(options: readonly Option[], word: string): Option | null {
  if (word.startsWith('--')) return options.find(({ long, required }) => required && long === word) ?? null;
  // Of several letters only the last one can want a value: -so json.
  const letter = `-${word.at(-1)}`;
  const isValueAttached = options.some(
    ({ short, required }) => required && word.length > 2 && word.startsWith(short ?? '='),
  );
  return isValueAttached ? null : (options.find(({ short, required }) => required && short === letter) ?? null);
}

function optionsOf(program: Command, command: Command | null): readonly Option[] {
  return [...(command?.options ?? []), ...program.options].filter(({ hidden }) => !hidden);
}

function optionCandidates(program: Command, command: Command | null): readonly Candidate[] {
  return [...optionsOf(program, command), ...HELP].flatMap(({ long, short, description }) =>
    long === undefined || long === null ? [{ text: short ?? '', description }] : [{ text: long, description }],
  );
}

const HELP: readonly Pick<Option, 'long' | 'short' | 'description'>[] = [
  { long: '--help', short: '-h', description: 'print the help of the command' },
];

function commandCandidates(program: Command): readonly Candidate[] {
  const visible = program.createHelp().visibleCommands(program);
  return visible.map((command) => ({ text: command.name(), description: command.summary() }));
}

/** What the value of an option is, as its flags say: `--file <file>`. */
function valuesOf({ flags, long, argChoices }: Option): Wanted {
  if (argChoices !== undefined) return list(argChoices.map(plain));
  if (long === '--profile') return { kind: 'profiles' };
  switch (/[<[](\w+)/.exec(flags)?.[1]) {
    case 'format':
      return list(FORMATS.map(plain));
    case 'file':
    case 'directory':
      return FILES;
    case 'path':
    case 'znode':
      return ZNODES;
    default:
      return NOTHING;
  }
}

function argumentOf(program: Command, command: Command, argument: Argument, typed: string): Wanted {
  if (argument.argChoices !== undefined) return list(argument.argChoices.map(plain));
  if (command.name() === 'profiles') return { kind: 'profiles' };
  if (command.name() === 'help') return list([...commandCandidates(program), plain('options')]);
  const name = argument.name();
  if (/file|command|arguments/.test(name)) return FILES;
  return typed.startsWith('/') || ZNODE_ARGUMENTS.test(name) ? ZNODES : NOTHING;
}

/** As the commands call arguments that are paths or locations of znodes. */
const ZNODE_ARGUMENTS = /path|znode|parent|root|source|target|from|to$|left|right|old|new/;

function list(candidates: readonly Candidate[]): Wanted {
  return { kind: 'candidates', candidates };
}

function plain(text: string): Candidate {
  return { text, description: '' };
}
