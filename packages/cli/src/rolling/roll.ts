import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import { lagOf, readStates, type ServerState } from '../monitoring/server-state.ts';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import type { PauseProbe, SeenPause } from './pause-probe.ts';

export interface RollOptions {
  /** For a shell; `{host}`, `{port}` and `{server}` stand for the server whose turn it is. */
  readonly command: string;
  /** For the command and for its server to be back, each. */
  readonly withinMs: number;
  readonly timeoutMs: number;
}

/** The result for one server. */
export interface RolledServer extends SeenPause {
  readonly server: string;
  /** Before. */
  readonly role: string | null;
  readonly versionBefore: string | null;
  readonly version: string | null;
  /** From the start of the command until the server was back. */
  readonly tookMs: number;
}

/** Observers and followers first, the leader last: so there is one election, and it is a planned one. */
export function rollingOrder(states: readonly ServerState[]): ServerState[] {
  const rankOf = ({ role }: ServerState): number => (role === 'observer' ? 0 : role === 'leader' ? 2 : 1);
  return states.toSorted((a, b) => rankOf(a) - rankOf(b));
}

/**
 * Runs a command for each server, one after the other, and waits until it serves again, in step with the others, before
 * the next one.
 *
 * @throws CommandFailure when not all serve at the beginning, a command fails, or a server does not come back: the others
 *   are left as they are
 */
export async function* roll(
  servers: readonly MonitoredServer[],
  probe: Pick<PauseProbe, 'take'>,
  options: RollOptions,
  signal: AbortSignal,
): AsyncGenerator<RolledServer> {
  const { timeoutMs, withinMs } = options;
  const states = await readStates(servers, timeoutMs, signal);
  for (const [turn, { server }] of rollingOrder(states).entries()) {
    // The leader may be another one meanwhile, and one that has failed by itself is one too many.
    const now = turn === 0 ? states : await readStates(servers, timeoutMs, signal);
    const away = now.find(({ problem }) => problem !== null);
    if (away !== undefined) {
      const done = turn === 0 ? 'nothing was done' : `${server.name} and the servers behind it were not touched`;
      const advice = 'a rolling change needs all servers: see meerkat doctor';
      throw new CommandFailure(CommandExit.no, `${done}: ${away.problem}; ${advice}`);
    }
    const before = now.find((state) => state.server === server);
    const sinceMs = performance.now();
    probe.take();
    await runCommand(server, options, signal);
    const after = await untilBack(server, servers, sinceMs + withinMs, timeoutMs, signal);
    yield {
      server: server.name,
      role: before?.role ?? null,
      versionBefore: before?.version ?? null,
      version: after.version,
      tookMs: Math.round(performance.now() - sinceMs),
      ...probe.take(),
    };
  }
}

async function runCommand(
  { host, port, name }: MonitoredServer,
  { command, withinMs }: RollOptions,
  signal: AbortSignal,
): Promise<void> {
  const values: Readonly<Record<string, string>> = { host, port: String(port), server: name };
  const text = command.replaceAll(/\{(host|port|server)\}/g, (_, key: string) => values[key] ?? '');
  const limit = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  const child = spawn('/bin/sh', ['-c', text], { stdio: ['ignore', 'ignore', 'inherit'], signal: limit });
  try {
    const [code, killed] = (await once(child, 'close')) as [number | null, string | null];
    if (code === 0) return;
    throw new CommandFailure(CommandExit.no, `${name}: "${text}" ended with ${killed ?? code}; ${STOPPED}`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(CommandExit.no, `${name}: "${text}" could not be run or took too long; ${STOPPED}`);
  }
}

const STOPPED = 'the servers behind it were not touched';

/** Serves, under a leader, and is near the others. */
async function untilBack(
  server: MonitoredServer,
  all: readonly MonitoredServer[],
  untilMs: number,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ServerState> {
  for (;;) {
    const states = await readStates(all, timeoutMs, signal);
    const own = states.find((state) => state.server === server);
    const isLed = all.length === 1 || states.some(({ role }) => role === 'leader');
    if (own?.problem === null && isLed) {
      const lag = lagOf(own, states);
      if (lag !== null && lag <= LAG_MAX) return own;
    }
    if (performance.now() > untilMs) {
      const found = own?.problem ?? 'it has not caught up with the others';
      throw new CommandFailure(CommandExit.no, `${server.name} is not back: ${found}; ${STOPPED}, see meerkat doctor`);
    }
    await sleep(PERIOD_MS, undefined, { signal });
  }
}

/** Txns: what a busy service does while it is asked. */
const LAG_MAX = 1000;
const PERIOD_MS = 100;
