import { parseDuration } from '../connection/duration.ts';
import type { Column } from '../output/column.ts';
import { statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { valueRecord } from '../value/value-record.ts';
import { type ConditionWords, describeState, parseConditions, type ZnodeState } from '../waiting/conditions.ts';

interface Options extends ConditionWords {
  readonly for?: string;
}

/** A longer wait is reported with its reason. Milliseconds. */
const QUIET_MS = 500;

/** `wait`: until a znode is as it should be. */
export const wait: DefineCommand = (command, host) => {
  command
    .description(
      'Wait until a znode is as it should be, and print how it is then. Several conditions have to hold at the same time. ' +
        'Continues through lost connections.',
    )
    .argument('<path>', 'the znode')
    .option('--exists', 'it is there (what is waited for when nothing is asked)')
    .option('--gone', 'it is not there')
    .option('--children <comparison>', "how many children it has: '>=3', '<10', 0")
    .option('--value <text>', 'its data are exactly this text')
    .option('--value-matches <regexp>', 'its data are text in which this regular expression is found')
    .option('--data-version <comparison>', "its version: '>=5', '!=2', 7")
    .option('--for <time>', 'fail after 500ms, 10s, 2m in total (exit code 124; default: never); --timeout is the same')
    .addHelpText(
      'after',
      examples([
        ['meerkat wait /app/ready', 'until it exists'],
        ['meerkat wait /locks/deploy --gone --for 5m', 'at most five minutes'],
        ["meerkat wait /workers --children '>=3'", 'until three are there'],
        ['meerkat wait /app/state --value done', 'until it says exactly "done"'],
        ["meerkat wait /app/state --value-matches '^(done|failed)$' -o json", 'and print which'],
      ]),
    )
    .action((path: string, options: Options) => host.run((context) => run(context, path, options)));
};

async function run(context: Context, text: string, options: Options): Promise<CommandExit> {
  const path = context.resolve(text);
  const conditions = parseConditions(options);
  const limitMs = options.for === undefined ? context.timeoutMs : parseDuration(options.for, '--for');
  const client = await context.connect();
  const { awaitState } = await import('../waiting/await-state.ts');
  const limit = new AbortController();
  const limitTimer = limitMs === undefined ? null : setTimeout(() => limit.abort(), limitMs);
  let last: ZnodeState | null = null;
  const noteTimer = setTimeout(() => {
    if (last !== null) context.note(`waiting: ${path}: ${describeState(last)}`);
  }, QUIET_MS);
  const wanted = conditions.map(({ shown }) => shown).join(' and ');
  try {
    const signal = AbortSignal.any([context.signal, limit.signal]);
    const state = await awaitState(client, path, conditions, signal, (seen) => {
      last = seen;
    });
    await print(context, path, state);
    return CommandExit.ok;
  } catch (error) {
    if (!limit.signal.aborted || context.signal.aborted) throw error;
    const found = last === null ? 'nothing is known of it' : describeState(last);
    throw new CommandFailure(CommandExit.timedOut, `${path}: timed out waiting for ${wanted}: ${found}`);
  } finally {
    clearTimeout(noteTimer);
    if (limitTimer !== null) clearTimeout(limitTimer);
  }
}

async function print({ report }: Context, path: string, state: ZnodeState): Promise<void> {
  if (report.isForPeople) await report.line(`${path}: ${describeState(state)}`);
  else await report.one(state.data === null ? COLUMNS : [...COLUMNS, ...VALUE_COLUMNS], { path, ...state });
}

type Found = ZnodeState & { readonly path: string };

const COLUMNS: readonly Column<Found>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'exists', value: ({ stat }) => stat !== null },
  ...statColumnsOf<Found>(({ stat }) => stat),
];

/** When a condition was about the data, and they were read therefore. */
const VALUE_COLUMNS: readonly Column<Found>[] = (['data', 'encoding'] as const).map((name) => ({
  name,
  value: ({ data }) => (data === null ? null : (valueRecord(data)[name] ?? null)),
}));
