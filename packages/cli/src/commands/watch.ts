import type { Client } from '@meerkat/client';
import { parseDuration } from '../connection/duration.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import type { Change } from '../watching/change.ts';

interface Options {
  readonly recursive?: boolean;
  readonly stats?: boolean;
  /** --no-values makes it false. */
  readonly values: boolean;
  readonly count?: string;
  readonly for?: string;
}

/** `watch`: changes as they come. */
export const watch: DefineCommand = (command, host) => {
  command
    .description(
      'Print changes as they happen, with what they did to the data, until Ctrl-C. Where a lost connection may have hidden ' +
        'some, that is reported, and what a comparison finds.',
    )
    .argument('<path>', 'the znode; it need not be there yet')
    .option('-r, --recursive', 'everything below as well')
    .option('--stats', 'only count: how often which znode changes, live on a terminal')
    .option('--no-values', 'do not read data: for large trees, and for little load')
    .option('--count <n>', 'end after so many changes')
    .option('--for <time>', 'end after 500ms, 10s, 2m (with --count: exit code 124 if there were fewer)')
    .addHelpText(
      'after',
      examples([
        ['meerkat watch /app/config', 'each new value, as a difference'],
        ['meerkat watch -r /services', 'everything that comes, changes and goes'],
        ['meerkat watch -r /app -o ndjson', 'an object a line, as each change comes'],
        ['meerkat watch -r / --stats --for 1m', 'what is busy: changes by znode in one minute'],
        ['meerkat watch /jobs --count 1', 'waits for the next change'],
      ]),
    )
    .action((path: string, options: Options) => host.run((context) => run(context, path, options)));
};

async function run(context: Context, text: string, options: Options): Promise<CommandExit> {
  const path = context.resolve(text);
  const countMax = parseCount(options.count);
  const limitMs = options.for === undefined ? null : parseDuration(options.for, '--for');
  const client = await context.connect();
  const { ChangeFeed } = await import('../watching/change-feed.ts');
  const limit = new AbortController();
  const signal = AbortSignal.any([context.signal, limit.signal]);
  await using sink = options.stats === true ? await makeChurnSink(context) : await makeChangeSink(context);
  const note = (line: string): void => sink.note(line);
  using _ = noteLosses(client, note);
  const feed = new ChangeFeed(client, path, {
    isRecursive: options.recursive === true,
    readsValues: options.values && options.stats !== true,
    signal,
    onReady: (znodes, isFull, refused) => {
      noteReady(note, path, options, znodes, isFull);
      noteRefused(note, refused);
    },
  });
  const limitTimer = limitMs === null ? null : setTimeout(() => limit.abort(), limitMs);
  let reported = 0;
  try {
    for await (const change of feed.changes()) {
      await sink.add(change);
      if (change.kind !== 'gap') reported++;
      if (reported === countMax) return CommandExit.ok;
    }
  } catch (error) {
    // What was being read when the time was up.
    if (!signal.aborted) throw error;
  } finally {
    if (limitTimer !== null) clearTimeout(limitTimer);
  }
  if (limit.signal.aborted && countMax !== null) {
    throw new CommandFailure(CommandExit.timedOut, `${path}: ${reported} of ${countMax} changes came within --for`);
  }
  return CommandExit.ok;
}

function parseCount(text: string | undefined): number | null {
  if (text === undefined) return null;
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 1) return number;
  throw new InvocationFailure(`--count: expected a number from 1 on, found "${text}"`);
}

function noteReady(note: Note, path: string, options: Options, znodes: number, isFull: boolean): void {
  const what = options.recursive === true ? `${path} and everything below it` : path;
  const isRead = options.values && options.stats !== true;
  const missing = isRead && znodes === 0 ? '; there is no such znode yet' : '';
  note(`watching ${what}${missing}; Ctrl-C ends`);
  if (isFull)
    note('there are too many znodes to keep all values: some changes will be reported without the value before');
}

function noteRefused(note: Note, refused: readonly string[]): void {
  if (refused.length === 0) return;
  const others = refused.length === 1 ? '' : ` and ${refused.length - 1} more`;
  note(`${refused[0]}${others} may not be read: changes there are not reported; --auth gives credentials`);
}

function noteLosses(client: Client, note: Note): Disposable {
  return client.onState(({ state, reason }) => {
    if (state === 'suspended') note(`no connection: ${reason}; trying to get back`);
    if (state === 'lost') note(`the session may be over: ${reason}; trying to get back`);
  });
}

type Note = (line: string) => void;

/** Consumes changes, and returns what is left to report at the end. */
interface ChangeSink extends AsyncDisposable {
  add(change: Change): Promise<void> | undefined;
  /** Something for people that is no change. */
  readonly note: Note;
}

async function makeChangeSink(context: Context): Promise<ChangeSink> {
  const { report } = context;
  const note: Note = (line) => context.note(line);
  const { CHANGE_COLUMNS, describeChange } = await import('../watching/change-report.ts');
  if (report.isForPeople) {
    const { diffValues } = await import('../value/value-diff.ts');
    return {
      note,
      add: (change) => report.line(describeChange(change, report.paint, diffValues)),
      [Symbol.asyncDispose]: async () => {},
    };
  }
  const list = await report.list(CHANGE_COLUMNS);
  return { note, add: (change) => list.add(change), [Symbol.asyncDispose]: async () => list.end() };
}

/** The live table is on a terminal; the final one is everywhere. */
async function makeChurnSink(context: Context): Promise<ChangeSink> {
  const { report, io } = context;
  const [{ CHURN_COLUMNS, ChurnTable }, { ChurnScreen, describeChurn }] = await Promise.all([
    import('../watching/churn.ts'),
    import('../watching/churn-screen.ts'),
  ]);
  const churn = new ChurnTable();
  const startMs = performance.now();
  const screen = report.isForPeople && report.isTerminal ? new ChurnScreen(churn, report, io) : null;
  return {
    note: (line) => {
      if (screen === null) context.note(line);
      else screen.interrupt(() => context.note(line));
    },
    add: (change) => {
      churn.add(change);
      return undefined;
    },
    [Symbol.asyncDispose]: async () => {
      screen?.[Symbol.dispose]();
      const elapsedMs = performance.now() - startMs;
      if (report.isForPeople) await report.line(describeChurn(churn, elapsedMs));
      const list = await report.list(CHURN_COLUMNS);
      for (const row of churn.rows(elapsedMs)) await list.add(row);
      await list.end();
    },
  };
}
