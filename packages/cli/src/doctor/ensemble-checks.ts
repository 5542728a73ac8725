import { lagOf, type ServerState } from '../monitoring/server-state.ts';
import type { FaultName, Finding } from './faults.ts';

/** One server as far as it could be seen. */
export interface SeenServer {
  readonly name: string;
  /** Null: `srvr` has not been answered. */
  readonly state: ServerState | null;
  /** The answer to `mntr` by key; null when there is none. */
  readonly monitor: ReadonlyMap<string, string> | null;
  /** Whether it said that it is not serving. */
  readonly isLooking: boolean;
  /** Whether its port could be connected to. */
  readonly isReached: boolean;
}

/** Compares what the servers report of themselves. Pure. */
export function checkEnsemble(servers: readonly SeenServer[]): Finding[] {
  const states = servers.flatMap(({ state }) => (state === null ? [] : [state]));
  return [...checkQuorum(servers), ...checkRoles(states), ...servers.flatMap((server) => checkServer(server, states))];
}

function checkQuorum(servers: readonly SeenServer[]): Finding[] {
  const looking = servers.filter(({ isLooking }) => isLooking);
  if (looking.length === 0) return [];
  const isLed = servers.some(({ state }) => state?.role === 'leader' || state?.role === 'follower');
  if (isLed) return [];
  const missing = servers.filter(({ state, isLooking }) => state === null && !isLooking);
  const isShort = missing.length >= servers.length / 2;
  const names = (list: readonly SeenServer[]): string => list.map(({ name }) => name).join(', ');
  const found = isShort
    ? `of ${servers.length} servers ${missing.length} do not answer: ${names(missing)}`
    : `${names(looking)} ${looking.length === 1 ? 'looks' : 'look'} for a leader`;
  return [{ fault: isShort ? 'voters-missing' : 'no-leader', where: 'ensemble', found }];
}

function checkRoles(states: readonly ServerState[]): Finding[] {
  const findings: Finding[] = [];
  const add = (fault: FaultName, found: string): number => findings.push({ fault, where: 'ensemble', found });
  const named = (role: string): string[] =>
    states.filter((state) => state.role === role).map(({ server }) => server.name);
  const [leaders, alone] = [named('leader'), named('standalone')];
  if (leaders.length > 1) add('two-leaders', `${leaders.join(' and ')} say that they lead`);
  if (alone.length > 0 && states.length > 1)
    add('ensembles-mixed', `${alone.join(', ')} ${alone.length === 1 ? 'says' : 'say'} "standalone"`);
  const versions = new Map<string, string[]>();
  for (const { version, server } of states) {
    if (version === null) continue;
    const short = version.replace(/-[0-9a-f]{40}$|--.*$/, '');
    versions.set(short, [...(versions.get(short) ?? []), server.name]);
  }
  if (versions.size > 1) {
    add('versions-differ', [...versions].map(([version, names]) => `${version} at ${names.join(', ')}`).join('; '));
  }
  return findings;
}

function checkServer({ name, state, monitor }: SeenServer, all: readonly ServerState[]): Finding[] {
  const findings: Finding[] = [];
  const add = (fault: FaultName, found: string): number => findings.push({ fault, where: name, found });
  if (state !== null) {
    if (state.role === 'read-only') add('read-only', 'it says "read-only"');
    const lag = lagOf(state, all);
    if (lag !== null && lag > LAG_MAX) add('server-behind', `${lag} txns behind the furthest`);
    if (state.outstanding > OUTSTANDING_MAX) add('requests-waiting', `${state.outstanding} requests wait`);
    if (state.latencyAverage > LATENCY_MAX_MS && state.received >= REQUESTS_MIN)
      add('server-slow', `${state.latencyAverage} ms a request on the average`);
  }
  if (monitor !== null) {
    const figure = (key: string): number => Number(monitor.get(`zk_${key}`) ?? Number.NaN);
    const [open, max] = [figure('open_file_descriptor_count'), figure('max_file_descriptor_count')];
    if (max > 0 && open > max * DESCRIPTORS_SHARE) add('descriptors-short', `${open} of ${max} are in use`);
    const [syncMs, syncs] = [figure('avg_fsynctime'), figure('cnt_fsynctime')];
    if (syncs >= SYNCS_MIN && syncMs > SYNC_MAX_MS)
      add('disk-slow', `a sync takes ${syncMs} ms on the average of ${syncs}`);
    const stalled = figure('jvm_pause_time_ms_max') || figure('max_jvm_pause_time_ms');
    if (stalled > STALL_MS) add('server-stalled', `it stood still for up to ${stalled} ms`);
    const voters = figure('quorum_size');
    if (state?.role === 'leader' && voters > 0 && voters % 2 === 0) add('voters-even', `${voters} voting servers`);
  }
  return findings;
}

/** Reads the answer to `mntr`. */
export function parseMonitor(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split('\n').flatMap((line) => (line.includes('\t') ? [line.split('\t', 2) as [string, string]] : [])),
  );
}

/** More than what a busy service is behind while it is asked. */
const LAG_MAX = 10_000;
const OUTSTANDING_MAX = 1000;
const LATENCY_MAX_MS = 100;
/** Of fewer the average says nothing. */
const REQUESTS_MIN = 30;
const SYNC_MAX_MS = 100;
/** Fewer say nothing about the disk. */
const SYNCS_MIN = 5;
const DESCRIPTORS_SHARE = 0.9;
const STALL_MS = 1000;
