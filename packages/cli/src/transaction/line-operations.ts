import { Command, CommanderError } from 'commander';
import { parseTtl } from '../connection/duration.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { parseAclText } from '../value/acl-text.ts';
import { addValueOptions, readValue, type ValueWords } from '../value/value-input.ts';
import type { Operation } from './operation.ts';
import { type Statement, StatementError, splitStatements } from './statements.ts';

/**
 * Reads operations in the words of the commands of the same names:
 *
 *     check PATH [-v VERSION]
 *     create [-e] [-s] [-c] [-t TIME] PATH [VALUE] [--acl ACL]
 *     set PATH VALUE [-v VERSION]
 *     delete PATH [-v VERSION]
 *
 * A VALUE that begins with "@" is that of a file, unless it is quoted.
 *
 * @param source where the text is from, for errors
 * @throws InvocationFailure and what files and values throw, each with its line
 */
export async function parseLines(
  context: Pick<Context, 'io' | 'signal'>,
  text: string,
  source: string,
): Promise<readonly Operation[]> {
  const operations: Operation[] = [];
  for (const statement of split(text, source)) {
    try {
      operations.push(await parseStatement(context, statement));
    } catch (error) {
      if (error instanceof CommandFailure) throw atLine(error, source, statement.line);
      if (error instanceof CommanderError) {
        throw atLine(new InvocationFailure(error.message.replace(/^error: /, '')), source, statement.line);
      }
      throw error;
    }
  }
  return operations;
}

function split(text: string, source: string): readonly Statement[] {
  try {
    return splitStatements(text);
  } catch (error) {
    if (error instanceof StatementError) throw atLine(new InvocationFailure(error.message), source, error.line);
    throw error;
  }
}

function atLine(failure: CommandFailure, source: string, line: number): CommandFailure {
  return new CommandFailure(failure.exitCode, `${source}, line ${line}: ${failure.message}`, failure.cause);
}

interface Words extends ValueWords {
  readonly sequential?: boolean;
  readonly ephemeral?: boolean;
  readonly container?: boolean;
  readonly ttl?: string;
  readonly acl?: string | undefined;
  readonly ifVersion?: string;
}

async function parseStatement(context: Pick<Context, 'io' | 'signal'>, statement: Statement): Promise<Operation> {
  const [name, ...rest] = statement.words;
  const form = FORMS[name?.text ?? ''];
  if (form === undefined) {
    throw new InvocationFailure(`"${name?.text}" is no operation of a transaction: check, create, set or delete`);
  }
  /** A quoted word is never an option, even with a leading dash: commander is passed a placeholder for it. */
  const quoted: string[] = [];
  const words = rest.flatMap(({ text, isQuoted }) => {
    if (!isQuoted) return /^@./.test(text) ? ['--file', text.slice(1)] : [text];
    quoted.push(text);
    return [`\0${quoted.length - 1}`];
  });
  const original = (text: string): string => (text.startsWith('\0') ? (quoted[Number(text.slice(1))] ?? '') : text);
  const command = form.define(new Command(name?.text)).helpOption(false).exitOverride().allowExcessArguments(false);
  command.configureOutput({ writeErr: () => {} });
  command.parse(words, { from: 'user' });
  const [path = '', value, acl] = command.args.map(original);
  const options = Object.fromEntries(
    Object.entries(command.opts<Words>()).map(([key, given]) => [
      key,
      typeof given === 'string' ? original(given) : given,
    ]),
  ) as Words;
  if (value === '-' || options.file === '-') throw new InvocationFailure('standard input is no value here');
  return form.make(context, `line ${statement.line}`, path, { ...options, value, acl: options.acl ?? acl });
}

interface Form {
  define(command: Command): Command;
  make(context: Pick<Context, 'io' | 'signal'>, origin: string, path: string, words: Words): Promise<Operation>;
}

const CHECK: Form = {
  define: (command) => withVersion(command.argument('<path>')),
  make: async (_, origin, path, words) => ({ kind: 'check', origin, path, version: versionOf(words) }),
};

const DELETE: Form = {
  ...CHECK,
  make: async (...words) => ({ ...(await CHECK.make(...words)), kind: 'delete' }) as Operation,
};

const SET: Form = {
  define: (command) => addValueOptions(withVersion(command.argument('<path>').argument('[value]'))),
  make: async (context, origin, path, words) => {
    const data = await readValue(context, words);
    if (data === null) throw new InvocationFailure(`set ${path}: the value is missing; an empty one is ""`);
    return { kind: 'set', origin, path, data, version: versionOf(words) };
  },
};

const CREATE: Form = {
  define: (command) =>
    addValueOptions(
      command
        .argument('<path>')
        .argument('[value]')
        .argument('[acl]')
        .option('-s, --sequential')
        .option('-e, --ephemeral')
        .option('-c, --container')
        .option('-t, --ttl <time>')
        .option('--acl <acl>'),
    ),
  make: async (context, origin, path, words) => {
    const { ephemeral, container, sequential, ttl, acl } = words;
    if (ephemeral === true && container === true) throw new InvocationFailure('-e and -c are two kinds of znode');
    const data = (await readValue(context, words)) ?? new Uint8Array(0);
    const mode = ephemeral === true ? 'ephemeral' : container === true ? 'container' : 'persistent';
    const ttlMs = ttl === undefined ? undefined : parseTtl(ttl);
    const shape = { mode, sequential, ttlMs, acl: acl === undefined ? undefined : parseAclText(acl) } as const;
    return { kind: 'create', origin, path, data, shape };
  },
};

const FORMS: Readonly<Record<string, Form>> = { check: CHECK, create: CREATE, set: SET, delete: DELETE, rm: DELETE };

function withVersion(command: Command): Command {
  return command.option('-v, --if-version <n>');
}

function versionOf({ ifVersion }: Words): number | undefined {
  if (ifVersion === undefined) return undefined;
  const version = Number(ifVersion);
  if (Number.isInteger(version) && /^-?\d+$/.test(ifVersion)) return version;
  throw new InvocationFailure(`--if-version: expected a number, found "${ifVersion}"`);
}
