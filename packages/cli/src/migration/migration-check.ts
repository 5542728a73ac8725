import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { askWord, type MonitoredServer, NoAnswerError } from '@meerkat/console/monitoring';
import { ArchiveError, type CheckedLog, checkLog } from '@meerkat/server/archive';
import { ConfigurationError, readZooCfg } from '@meerkat/server/run';
import { parseMonitor } from '../doctor/ensemble-checks.ts';
import { readStates, type ServerState } from '../monitoring/server-state.ts';
import { fileFailure } from '../run/command-failure.ts';
import { describeFeatures, readFeatures } from './data-features.ts';
import type { MigrationNote } from './migration-note.ts';

/** Asks the servers that are to be replaced. */
export async function checkServers(
  servers: readonly MonitoredServer[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<MigrationNote[]> {
  const states = await readStates(servers, timeoutMs, signal);
  const notes = states.flatMap(describeServer);
  const leader = states.find(({ role }) => role === 'leader' || role === 'standalone');
  if (leader === undefined) notes.push({ level: 'stop', where: 'ensemble', text: 'none of these servers leads' });
  else notes.push(...(await describeService(leader.server, timeoutMs, signal)));
  if (states.some(({ role }) => role === 'standalone')) {
    const text = 'stands alone: its replacement is a pause of one restart, and sessions survive it';
    notes.push({ level: 'change', where: leader?.server.name ?? 'ensemble', text });
  } else if (states.length < 3) {
    notes.push({
      level: 'change',
      where: 'ensemble',
      text: `${states.length} servers: no quorum while one is replaced`,
    });
  }
  return notes;
}

function describeServer({ server: { name }, version, role, problem }: ServerState): MigrationNote[] {
  if (problem !== null) return [{ level: 'stop', where: name, text: problem }];
  if (version === null) return [{ level: 'stop', where: name, text: 'its version is unknown' }];
  const text = `${version}, ${role}`;
  if (version.includes('meerkat')) return [{ level: 'fact', where: name, text: `${text}: it is replaced already` }];
  const [, major = '0', minor = '0'] = /^(\d+)\.(\d+)/.exec(version) ?? [];
  const number = Number(major) * 100 + Number(minor);
  if (number < 305) {
    return [
      {
        level: 'stop',
        where: name,
        text: `${text}: upgrade Apache's servers to 3.8 first; before 3.5 they speak another protocol`,
      },
    ];
  }
  if (number < 308) return [{ level: 'change', where: name, text: `${text}: mixed ensembles are tested with 3.8` }];
  return [{ level: 'fact', where: name, text }];
}

async function describeService(
  server: MonitoredServer,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<MigrationNote[]> {
  const { name } = server;
  let monitor: ReadonlyMap<string, string>;
  try {
    monitor = parseMonitor(await askWord(server, 'mntr', timeoutMs, signal));
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    return [{ level: 'change', where: name, text: `sizes are not known: ${error.message}` }];
  }
  const figure = (key: string): number => Number(monitor.get(`zk_${key}`) ?? 0);
  const znodes = figure('znode_count');
  const data = figure('approximate_data_size');
  const [ephemerals, watches] = [figure('ephemerals_count'), figure('watch_count')];
  const sessions = figure('global_sessions');
  const megabytes = Math.ceil(foretoldMegabytes({ znodes, data, watches }));
  const notes: MigrationNote[] = [
    {
      level: 'fact',
      where: name,
      text: `${znodes} znodes of ${data} bytes, ${ephemerals} ephemerals, ${watches} watches, ${sessions} sessions`,
    },
    {
      level: 'fact',
      where: name,
      text: `a server of Meerkat will take about ${megabytes} MB of memory for that; twice as much is room for load`,
    },
  ];
  if (figure('local_sessions') > 0)
    notes.push({
      level: 'fact',
      where: name,
      text: `${figure('local_sessions')} local sessions: they end with the server that they are at, as with Apache's`,
    });
  if (figure('fsync_threshold_exceed_count') > 0)
    notes.push({
      level: 'change',
      where: name,
      text: `${figure('fsync_threshold_exceed_count')} syncs of its log took longer than fsync.warningthresholdms: look at the disk first`,
    });
  return notes;
}

/** @param data bytes of paths and data, as `approximate_data_size` counts them */
export function foretoldMegabytes({ znodes, data, watches }: ServiceSize): number {
  return (znodes * ZNODE_BYTES + data * 1.3 + watches * WATCH_BYTES) / 2 ** 20 + PROCESS_MB;
}

interface ServiceSize {
  readonly znodes: number;
  readonly data: number;
  readonly watches: number;
}

/** Reads the files that the new servers will be started with. */
export function checkConfiguration(file: string): { readonly notes: MigrationNote[]; readonly directories: string[] } {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw fileFailure(`cannot read the configuration ${file}`, error);
  }
  try {
    const { warnings, server } = readZooCfg({ text, file, workingDirectory: dirname(resolve(file)) });
    const notes: MigrationNote[] = warnings.map((warning) => ({ level: 'change', where: file, text: warning }));
    if (notes.length === 0) notes.push({ level: 'fact', where: file, text: 'every line takes effect' });
    return { notes, directories: [...new Set([server.dataDirectory, server.dataLogDirectory])] };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const notes: MigrationNote[] = error.message
      .split('\n')
      .map((line) => ({ level: 'stop', where: file, text: line }));
    return { notes, directories: [] };
  }
}

/** Reads the logs and the names of the snapshots of a data directory; a server may be running on it. */
export async function checkDirectory(directory: string, signal: AbortSignal): Promise<MigrationNote[]> {
  const version = join(directory, 'version-2');
  let names: string[];
  try {
    names = readdirSync(version);
  } catch (error) {
    return [{ level: 'stop', where: version, text: `it cannot be read: ${(error as Error).message}` }];
  }
  const notes: MigrationNote[] = [];
  const logs = names.filter((name) => /^log\.[0-9a-f]+$/.test(name)).toSorted((a, b) => zxidIn(a) - zxidIn(b));
  let before: CheckedLog | null = null;
  let txns = 0;
  for (const name of logs) {
    const path = join(version, name);
    before = await (name === logs.at(-1) ? checkGrowingLog(path, before, signal) : checkLog(path, before, signal));
    txns += before.entries;
    if (before.problem !== null) notes.push({ level: 'stop', where: path, text: before.problem });
    for (const text of before.notes) notes.push({ level: 'change', where: path, text });
  }
  const snapshots = names.filter((name) => SNAPSHOT.test(name)).toSorted((a, b) => zxidIn(a) - zxidIn(b));
  notes.push({
    level: 'fact',
    where: version,
    text: `${snapshots.length} snapshots, ${logs.length} logs with ${txns} txns`,
  });
  const newest = snapshots.at(-1);
  if (newest !== undefined) notes.push(...(await checkData(join(version, newest), signal)));
  return notes;
}

/** From the newest snapshot; the logs after it are a little newer. */
async function checkData(path: string, signal: AbortSignal): Promise<MigrationNote[]> {
  try {
    return describeFeatures(await readFeatures(path, signal), path);
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    return [{ level: 'stop', where: path, text: error.message }];
  }
}

const SNAPSHOT = /^snapshot\.[0-9a-f]+(?:\.gz|\.snappy)?$/;

/** A server may be writing it, and what is half written looks like damage; that stays where it is, though. */
async function checkGrowingLog(path: string, before: CheckedLog | null, signal: AbortSignal): Promise<CheckedLog> {
  let checked = await checkLog(path, before, signal);
  for (;;) {
    const { problem } = checked;
    if (problem === null) return checked;
    await sleep(AGAIN_MS, undefined, { signal });
    checked = await checkLog(path, before, signal);
    if (checked.problem === problem) return checked;
  }
}

const AGAIN_MS = 300;

function zxidIn(name: string): number {
  return Number.parseInt(name.split('.')[1] ?? '', 16);
}

/** Measured, see docs/operations.md: bytes for a znode beside its data and path, and for a watch; megabytes for a server without data. */
const ZNODE_BYTES = 300;
const WATCH_BYTES = 260;
const PROCESS_MB = 90;
