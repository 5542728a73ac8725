import { readFile } from 'node:fs/promises';
import { TransactionError } from '@meerkat/client';
import type { Column } from '../output/column.ts';
import { statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, fileFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { explainFailure } from '../run/failure.ts';
import { makeTransaction, type Operation, type Outcome, outcomeOf } from '../transaction/operation.ts';
import { readInput } from '../value/value-input.ts';

interface Options {
  readonly dryRun?: boolean;
}

/** `txn`: several changes, all or none. */
export const txn: DefineCommand = (command, host) => {
  command
    .description(
      'Carry out several changes, all of them or none. One a line, in the words of the commands of these names:\n\n' +
        '  check PATH [-v VERSION]      it is there, with this version\n' +
        '  create PATH [VALUE] [-e] [-s] [-c] [-t TIME] [--acl ACL]\n' +
        '  set PATH VALUE [-v VERSION]\n' +
        '  delete PATH [-v VERSION]\n\n' +
        'VALUE is a word, "quoted text" with \\n and the like, or @FILE; "#" begins a comment. Or JSON, as an array or an ' +
        'object a line: {"op": "set", "path": "/a", "data": "x", "version": 3}.',
    )
    .argument('[file]', 'the operations; standard input when it is - or missing')
    .option('-n, --dry-run', 'only print what would be sent')
    .addHelpText(
      'after',
      examples([
        ['meerkat txn changes.txt', 'the operations of a file'],
        [`printf 'check /a -v 3\\nset /a new' | meerkat txn`, 'sets /a if its version is 3'],
        ['meerkat txn -n changes.txt', 'looks for mistakes, and changes nothing'],
        ['meerkat txn changes.ndjson -o ndjson', 'JSON in and out'],
      ]),
    )
    .action((file: string | undefined, options: Options) => host.run((context) => run(context, file, options)));
};

async function run(context: Context, file: string | undefined, { dryRun }: Options): Promise<CommandExit> {
  const operations = await readOperations(context, file);
  if (dryRun === true) {
    await print(
      context,
      operations.map((operation, i) => outcomeOf(operation, null, i)),
    );
    return CommandExit.ok;
  }
  const client = await context.connect();
  try {
    const results = await makeTransaction(client, operations).commit(context.call);
    await print(
      context,
      operations.map((operation, i) => outcomeOf(operation, results[i], i)),
    );
    return CommandExit.ok;
  } catch (error) {
    throw error instanceof TransactionError ? refusalOf(error, operations) : error;
  }
}

async function readOperations(context: Context, file: string | undefined): Promise<readonly Operation[]> {
  const isInput = file === undefined || file === '-';
  if (isInput && context.io.stdin.isTTY === true) context.note('operations, one a line; Ctrl-D ends them');
  const source = isInput ? 'standard input' : file;
  const text = new TextDecoder().decode(await readSource(context, isInput ? null : file));
  const { looksLikeJson, parseJsonOperations } = await import('../transaction/json-operations.ts');
  const operations = looksLikeJson(text)
    ? parseJsonOperations(text, source)
    : await (await import('../transaction/line-operations.ts')).parseLines(context, text, source);
  if (operations.length === 0)
    throw new InvocationFailure(`${source}: there are no operations; see "meerkat txn --help"`);
  return operations.map((operation) => ({ ...operation, path: context.resolve(operation.path) }));
}

async function readSource({ io, signal }: Context, file: string | null): Promise<Uint8Array> {
  if (file === null) return readInput(io.stdin, signal, 'standard input');
  try {
    return await readFile(file, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    throw fileFailure(`cannot read the operations of ${file}`, error);
  }
}

/** Names the operation that was refused as the file has it. */
function refusalOf(error: TransactionError, operations: readonly Operation[]): CommandFailure {
  const { exitCode, message } = explainFailure(error.cause);
  const origin = operations[error.index]?.origin ?? `operation ${error.index + 1}`;
  return new CommandFailure(exitCode, `${origin}: ${message}; nothing was done`, error.cause);
}

async function print({ report }: Context, outcomes: readonly Outcome[]): Promise<void> {
  const list = await report.list(COLUMNS);
  for (const outcome of outcomes) await list.add(outcome);
  await list.end();
}

const COLUMNS: readonly Column<Outcome>[] = [
  { name: 'number', value: ({ number }) => number, only: 'data' },
  { name: 'op', value: ({ kind }) => kind },
  { name: 'path', value: ({ path }) => path },
  { name: 'version', value: ({ stat }) => stat?.version ?? null, only: 'table', align: 'right' },
  ...statColumnsOf<Outcome>(({ stat }) => stat).map((column) => ({ ...column, only: 'data' as const })),
];
