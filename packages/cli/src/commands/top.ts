import { setTimeout as sleep } from 'node:timers/promises';
import { parseDuration } from '../connection/duration.ts';
import { readStates, type ServerState } from '../monitoring/server-state.ts';
import { TopScreen } from '../monitoring/top-screen.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { parseWholeNumber } from '../run/whole-number.ts';
import { ANSWER_MS } from './status.ts';

interface Options {
  readonly every: string;
  readonly count?: string;
}

/** `top`: the servers of a service at work, again and again. */
export const top: DefineCommand = (command, host) => {
  command
    .option('--every <time>', 'how often servers are asked', '1s')
    .option('--count <n>', 'how many times; without it, until Ctrl-C')
    .addHelpText(
      'after',
      `\nServers are asked srvr, which every server answers. A screen of 80 × 24 has room for eight servers.\n${examples(
        [
          ['meerkat top --server zk1,zk2,zk3', 'until Ctrl-C'],
          ['meerkat top --count 1', 'once'],
          ['meerkat top --every 5s -o ndjson', 'an object for each server and time, for a program'],
        ],
      )}`,
    )
    .action((options: Options) => host.run((context) => run(context, options)));
};

async function run(context: Context, options: Options): Promise<CommandExit> {
  const { report, signal, io } = context;
  const everyMs = parseDuration(options.every, '--every');
  const count = options.count === undefined ? Number.POSITIVE_INFINITY : parseWholeNumber(options.count, '--count');
  // A busy server takes longer than a short interval; a silent one must not keep the others from the screen.
  const answerMs = context.timeoutMs ?? Math.min(Math.max(everyMs, ANSWER_MS_MIN), ANSWER_MS);
  const servers = await context.servers();
  const screen = new TopScreen(report.paint);
  const list = report.isForPeople ? null : await report.list(COLUMNS);
  let lastMs = 0;
  let height = 0;
  for (let i = 0; i < count && !signal.aborted; i++) {
    if (i > 0) await sleep(everyMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) break;
    const nowMs = performance.now();
    const states = await readStates(servers, answerMs, signal);
    if (list !== null) for (const state of states) await list.add({ atMs: Date.now(), state });
    else {
      const { rows = 24 } = io.stdout as { readonly rows?: number };
      const lines = screen.draw(states, lastMs === 0 ? 0 : nowMs - lastMs, report.isTerminal ? rows : 1000);
      const back = report.isTerminal && height > 0 ? `\x1b[${height}A\r\x1b[J` : '';
      // Lines are cut, not wrapped: one that wraps would be two when it is erased.
      await report.write(report.isTerminal ? `${back}\x1b[?7l${lines.join('\n')}\n\x1b[?7h` : `${lines.join('\n')}\n`);
      height = lines.length;
    }
    lastMs = nowMs;
  }
  await list?.end();
  return CommandExit.ok;
}

interface Sample {
  readonly atMs: number;
  readonly state: ServerState;
}

const COLUMNS: readonly Column<Sample>[] = [
  { name: 'time', value: ({ atMs }) => atMs },
  { name: 'server', value: ({ state }) => state.server.name },
  { name: 'role', value: ({ state }) => state.role },
  { name: 'zxid', value: ({ state }) => (state.zxid === null ? null : `0x${state.zxid.toString(16)}`) },
  { name: 'received', value: ({ state }) => state.received },
  { name: 'sent', value: ({ state }) => state.sent },
  { name: 'latencyAvgMs', value: ({ state }) => state.latencyAverage },
  { name: 'latencyMaxMs', value: ({ state }) => state.latencyMax },
  { name: 'connections', value: ({ state }) => state.connections },
  { name: 'outstanding', value: ({ state }) => state.outstanding },
  { name: 'znodes', value: ({ state }) => state.znodes },
  { name: 'problem', value: ({ state }) => state.problem },
];

/** However often servers are asked. */
const ANSWER_MS_MIN = 1000;
