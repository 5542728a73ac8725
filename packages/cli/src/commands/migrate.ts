import { Argument, Option } from 'commander';
import { parseDuration } from '../connection/duration.ts';
import { checkConfiguration, checkDirectory, checkServers } from '../migration/migration-check.ts';
import type { MigrationNote } from '../migration/migration-note.ts';
import { isOf, type MigrationStep, type MigrationTarget, planMigration } from '../migration/migration-plan.ts';
import { lagOf, readStates, type ServerState } from '../monitoring/server-state.ts';
import type { Column } from '../output/column.ts';
import { PauseProbe } from '../rolling/pause-probe.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

interface Words {
  readonly config?: readonly string[];
  readonly data?: readonly string[];
  readonly to: MigrationTarget;
  readonly for?: string;
}

/** `migrate`: from Apache's servers to ours while clients are served, and back. */
export const migrate: DefineCommand = (command, host) => {
  command
    .addArgument(new Argument('<action>', 'check, plan or status').choices(['check', 'plan', 'status']))
    .option('--config <file...>', 'check: the zoo.cfg of servers, read as Meerkat will; their directories, too')
    .option('--data <directory...>', 'check: data directories, or copies of them')
    .addOption(new Option('--to <program>', 'plan, status: where to').choices(['meerkat', 'apache']).default('meerkat'))
    .option('--for <duration>', 'status: watch the pause that a client sees for so long')
    .addHelpText(
      'after',
      `\ncheck: exit code 1 when something stands in the way. status: exit code 0 when every server is of the program of --to.
The steps themselves are commands of yours: meerkat roll runs them in the order of the plan.\n${examples([
        ['meerkat migrate check --profile prod --config /etc/zookeeper/conf/zoo.cfg', 'what will be different'],
        ['meerkat migrate plan --profile prod', 'what to do, in order'],
        ['meerkat migrate status --profile prod --for 1m', 'how far it is, and the longest pause of a minute'],
        ['meerkat migrate plan --profile prod --to apache', 'the way back'],
      ])}`,
    )
    .action((action: 'check' | 'plan' | 'status', words: Words) =>
      host.run((context) => {
        switch (action) {
          case 'check':
            return check(context, words);
          case 'plan':
            return plan(context, words);
          case 'status':
            return status(context, words);
        }
      }),
    );
};

async function check(context: Context, { config = [], data = [] }: Words): Promise<CommandExit> {
  const { report, timeoutMs = ANSWER_MS, signal } = context;
  const notes = await checkServers(await context.servers(), timeoutMs, signal);
  const directories = new Set(data);
  for (const file of config) {
    const found = checkConfiguration(file);
    notes.push(...found.notes);
    for (const directory of found.directories) directories.add(directory);
  }
  for (const directory of directories) notes.push(...(await checkDirectory(directory, signal)));
  const list = await report.list(noteColumns(context));
  for (const note of notes) await list.add(note);
  await list.end();
  return notes.some(({ level }) => level === 'stop') ? CommandExit.no : CommandExit.ok;
}

function noteColumns({ report: { paint } }: Context): readonly Column<MigrationNote>[] {
  return [
    {
      name: 'level',
      value: ({ level }) => level,
      text: ({ level }) => (level === 'stop' ? paint.bad(level) : level === 'change' ? paint.notable(level) : level),
    },
    { name: 'where', value: ({ where }) => where },
    { name: 'text', value: ({ text }) => text },
  ];
}

async function plan(context: Context, { to }: Words): Promise<CommandExit> {
  const { report, timeoutMs = ANSWER_MS, signal } = context;
  const states = await readStates(await context.servers(), timeoutMs, signal);
  const list = await report.list(STEP_COLUMNS);
  for (const step of planMigration(states, to)) await list.add(step);
  await list.end();
  const away = states.filter(({ problem }) => problem !== null);
  for (const { problem } of away) context.note(`meerkat: ${problem}: begin when all servers serve`);
  if (states.every(({ role }) => role === null)) return CommandExit.unreachable;
  return away.length === 0 ? CommandExit.ok : CommandExit.no;
}

const STEP_COLUMNS: readonly Column<MigrationStep>[] = [
  { name: 'step', value: ({ step }) => step, align: 'right' },
  { name: 'server', value: ({ server }) => server },
  { name: 'role', value: ({ role }) => role },
  { name: 'isDone', value: ({ isDone }) => isDone, text: ({ isDone }) => (isDone ? 'done' : 'to do') },
  { name: 'action', value: ({ action }) => action },
  { name: 'until', value: ({ until }) => until, only: 'data' },
];

async function status(context: Context, words: Words): Promise<CommandExit> {
  const { report, timeoutMs = ANSWER_MS, signal } = context;
  const servers = await context.servers();
  if (words.for !== undefined) await watchPause(context, parseDuration(words.for, '--for'));
  const states = await readStates(servers, timeoutMs, signal);
  const list = await report.list(statusColumns(states, words.to));
  for (const state of states) await list.add(state);
  await list.end();
  const next = planMigration(states, words.to).find(({ isDone }) => !isDone);
  const away = states.find(({ problem }) => problem !== null);
  if (away !== undefined) context.note(`wait: ${away.problem}`);
  else if (next !== undefined) context.note(`next: ${next.server} (${next.role}): ${next.action}`);
  if (states.every(({ role }) => role === null)) return CommandExit.unreachable;
  return away === undefined && next === undefined ? CommandExit.ok : CommandExit.no;
}

async function watchPause(context: Context, forMs: number): Promise<void> {
  const client = await context.connect();
  const probe = await PauseProbe.start(client, null);
  const sessionId = probe.sessionId;
  probe.take();
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, forMs);
    context.signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
  const { pauseMs, requests, failures } = probe.take();
  const kept = probe.sessionId === sessionId ? 'its session was kept' : 'its session was lost';
  await probe.stop();
  context.signal.throwIfAborted();
  context.note(
    `a client saw a pause of ${pauseMs} ms at most in ${forMs} ms (${requests} requests, ${failures} failed); ${kept}`,
  );
}

function statusColumns(states: readonly ServerState[], to: MigrationTarget): readonly Column<ServerState>[] {
  return [
    { name: 'server', value: ({ server }) => server.name },
    { name: 'role', value: ({ role }) => role },
    { name: 'version', value: ({ version }) => version },
    { name: 'isDone', value: (state) => isOf(state, to), text: (state) => (isOf(state, to) ? 'done' : 'to do') },
    { name: 'lag', value: (state) => lagOf(state, states), align: 'right' },
    { name: 'connections', value: ({ connections }) => connections, align: 'right' },
    { name: 'problem', value: ({ problem }) => problem },
  ];
}
