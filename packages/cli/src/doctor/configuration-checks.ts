import { readdirSync, readFileSync, statfsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigurationError, type ReadConfiguration, readZooCfg } from '@meerkat/server/run';
import { fileFailure } from '../run/command-failure.ts';
import type { FaultName, Finding } from './faults.ts';
import { tryAddress } from './tcp-probe.ts';

/** A zoo.cfg that could be read. */
interface ReadFile {
  readonly file: string;
  readonly configuration: ReadConfiguration;
}

/** Looks at the files of servers: whether each can be used, whether they agree, and at the disks that they name. */
export async function checkConfigurations(
  files: readonly string[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const read: ReadFile[] = [];
  for (const file of files) {
    try {
      read.push({ file, configuration: readConfiguration(file) });
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      for (const fault of error.faults) findings.push(describeFault(fault));
    }
  }
  for (const { file, configuration } of read) findings.push(...checkDirectories(file, configuration));
  findings.push(...compareMembers(read), ...(await probeElectionPorts(read, timeoutMs, signal)));
  return findings;
}

function readConfiguration(file: string): ReadConfiguration {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw fileFailure(`cannot read the configuration ${file}`, error);
  }
  return readZooCfg({ text, file, workingDirectory: dirname(resolve(file)) });
}

function describeFault({ file, line, key, found, expected }: ConfigurationError['faults'][number]): Finding {
  const where = line === null ? file : `${file}:${line}`;
  const text = `${key === null ? '' : `${key}: `}found ${found}, expected ${expected}`;
  if (!file.endsWith('myid')) return { fault: 'configuration-refused', where, found: text };
  return { fault: expected.startsWith('an id that') ? 'myid-not-listed' : 'myid-missing', where, found: text };
}

function checkDirectories(file: string, { core, server }: ReadConfiguration): Finding[] {
  const findings: Finding[] = [];
  for (const directory of new Set([server.dataDirectory, server.dataLogDirectory])) {
    const free = freeShareOf(directory);
    if (free !== null && (free.share < FREE_SHARE_MIN || free.bytes < FREE_BYTES_MIN)) {
      const found = `${Math.floor(free.bytes / 2 ** 20)} MiB are free, ${(free.share * 100).toFixed(1)} %`;
      findings.push({ fault: 'disk-full', where: directory, found });
    }
  }
  const snapshots = countSnapshots(core.snapshotDirectory);
  if (core.purgeIntervalMs === 0 && snapshots > SNAPSHOTS_MAX) {
    findings.push({ fault: 'purge-off', where: file, found: `${snapshots} snapshots in ${core.snapshotDirectory}` });
  }
  return findings;
}

function freeShareOf(directory: string): { readonly share: number; readonly bytes: number } | null {
  try {
    const { bavail, blocks, bsize } = statfsSync(directory);
    return blocks === 0 ? null : { share: bavail / blocks, bytes: bavail * bsize };
  } catch {
    return null;
  }
}

function countSnapshots(directory: string): number {
  try {
    return readdirSync(directory).filter((name) => name.startsWith('snapshot.')).length;
  } catch {
    return 0;
  }
}

function compareMembers(read: readonly ReadFile[]): Finding[] {
  const findings: Finding[] = [];
  const add = (fault: FaultName, found: string): number => findings.push({ fault, where: 'ensemble', found });
  const members = read.filter(({ configuration }) => configuration.core.ensemble !== null);
  const byId = new Map<number, string>();
  let first: { readonly file: string; readonly list: string } | null = null;
  for (const { file, configuration } of members) {
    const { serverId, ensemble } = configuration.core;
    const other = byId.get(serverId);
    if (other !== undefined) add('myid-twice', `${other} and ${file} both belong to server ${serverId}`);
    byId.set(serverId, file);
    const list = JSON.stringify(
      ensemble?.membership.members
        .map(({ serverId: id, role, addresses }) => [id, role, addresses])
        .toSorted(([a], [b]) => Number(a) - Number(b)),
    );
    first ??= { file, list };
    if (list !== first.list)
      add('members-differ', `${first.file} and ${file} list other members, or other addresses of them`);
  }
  const [any] = members;
  const voters = any?.configuration.core.ensemble?.membership.members.filter(
    ({ role }) => role === 'participant',
  ).length;
  if (voters !== undefined && voters % 2 === 0) add('voters-even', `${voters} voting servers`);
  return findings;
}

/** Seen from here; the servers may see it differently, which their logs show. */
async function probeElectionPorts(
  read: readonly ReadFile[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Finding[]> {
  const places = new Map<string, { readonly id: number; readonly host: string; readonly port: number }>();
  for (const { configuration } of read) {
    for (const { serverId, addresses } of configuration.core.ensemble?.membership.members ?? []) {
      for (const { host, electionPort } of addresses) {
        places.set(`${host}:${electionPort}`, { id: serverId, host, port: electionPort });
      }
    }
  }
  const found = await Promise.all(
    [...places].map(async ([place, { id, host, port }]): Promise<Finding[]> => {
      const failure = await tryAddress(host, port, timeoutMs, signal);
      if (failure === null) return [];
      return [{ fault: 'election-port-closed', where: place, found: `server ${id}: ${failure}` }];
    }),
  );
  return found.flat();
}

/** Less free than this is no room for the next log file and snapshot. */
const FREE_SHARE_MIN = 0.05;
const FREE_BYTES_MIN = 128 * 2 ** 20;
/** The purge keeps three. */
const SNAPSHOTS_MAX = 10;
