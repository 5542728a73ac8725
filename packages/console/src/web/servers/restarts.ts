import type { ServerSample, ServersSample } from '../../api/messages.ts';

/** The state of a server in a rolling restart. */
export interface ServerRestart {
  readonly name: string;
  /** `restarted`: it stopped and came back; `away`: it is stopped; `due`: it has been running since before. */
  readonly state: 'restarted' | 'away' | 'due';
  readonly role: string | null;
  /** The start time of its process, if reported (mntr); null: not reported. */
  readonly startedMs: number | null;
  readonly versionBefore: string | null;
  readonly version: string | null;
}

/**
 * Which servers were restarted in the time of the samples, and which are due: observers and followers first, the leader
 * last, in the usual order.
 *
 * 1. A server was restarted if it was away between two samples, or its process is younger than the samples.
 * 2. A restart before the first sample shows only in the age of the process; where all are equally young, they were
 *    started together.
 *
 * @param samples oldest first
 * @returns null when nothing looks like a restart
 */
export function readRestarts(samples: readonly ServersSample[], keptMs: number): readonly ServerRestart[] | null {
  const first = samples[0];
  const last = samples.at(-1);
  if (first === undefined || last === undefined) return null;
  const starts = first.servers.flatMap(({ name }) => startOf(ownSamples(name, [first])[0]) ?? []);
  const youngMs = first.atMs - keptMs;
  const isMixed = starts.some((ms) => ms > youngMs) && starts.some((ms) => ms <= youngMs);
  const restarts = last.servers.map(({ name }) => describe(name, samples, isMixed ? youngMs : first.atMs));
  const hasVersions = new Set(restarts.flatMap(({ version }) => version ?? [])).size > 1;
  if (restarts.every(({ state }) => state === 'due') && !hasVersions) return null;
  return restarts.toSorted((a, b) => rankOf(a) - rankOf(b));
}

function describe(name: string, samples: readonly ServersSample[], sinceMs: number): ServerRestart {
  const own = ownSamples(name, samples);
  const now = own.at(-1);
  const up = own.filter(({ server }) => isUp(server));
  const startedMs = startOf(up.at(-1));
  const isAway = now === undefined || !isUp(now.server);
  const isYoung = startedMs !== null && startedMs > sinceMs;
  return {
    name,
    state: isAway ? 'away' : isYoung || hasGone(name, samples) ? 'restarted' : 'due',
    role: now?.server.role ?? null,
    startedMs: isAway ? null : startedMs,
    versionBefore: up[0]?.server.version ?? null,
    version: isAway ? null : (now?.server.version ?? null),
  };
}

/** It served, and then did not, or another process did. */
function hasGone(name: string, samples: readonly ServersSample[]): boolean {
  const own = ownSamples(name, samples);
  return own.some((sample, i) => {
    const before = own[i - 1];
    if (before === undefined || !isUp(before.server)) return false;
    const [start, startBefore] = [startOf(sample), startOf(before)];
    return isLost(sample.server) || (start !== null && startBefore !== null && start - startBefore > SAME_START_MS);
  });
}

interface OwnSample {
  readonly atMs: number;
  readonly server: ServerSample;
}

function ownSamples(name: string, samples: readonly ServersSample[]): readonly OwnSample[] {
  return samples.flatMap(({ atMs, servers }) => {
    const server = servers.find((one) => one.name === name);
    return server === undefined ? [] : [{ atMs, server }];
  });
}

function startOf(sample: OwnSample | undefined): number | null {
  const uptimeMs = sample?.server.metrics['zk_uptime'];
  return sample === undefined || uptimeMs === undefined ? null : sample.atMs - uptimeMs;
}

function isUp({ role, problem }: ServerSample): boolean {
  return problem === null && role !== null;
}

/** Its process is gone; one that looks for a leader is not. */
function isLost({ role, problem }: ServerSample): boolean {
  return problem !== null && role === null;
}

function rankOf({ state, role }: ServerRestart): number {
  if (state !== 'due') return state === 'restarted' ? 0 : 1;
  return role === 'observer' ? 2 : role === 'leader' ? 4 : 3;
}

/** Much time may pass between sending the request for the age and its answer. */
const SAME_START_MS = 5000;
