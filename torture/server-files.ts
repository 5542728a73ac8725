import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerPlace } from './network.ts';

/** Where one server keeps what is its own. */
export interface ServerFiles {
  readonly id: number;
  readonly directory: string;
  readonly configuration: string;
  /** What it began with: all servers are members. */
  readonly firstConfiguration: string;
  /** What it prints, over all its lives. */
  readonly log: string;
  /** Its process, while it has one. */
  readonly pid: string;
  /** `version-2`, with transaction logs and snapshots. */
  readonly data: string;
  /** Logs that it has removed. */
  readonly attic: string;
  /** Epochs that it has led, and behind which zxid each began. */
  readonly established: string;
}

export type Role = 'participant' | 'observer';

/** Name and password of the user who may change the members. */
export const SUPER_USER = 'super:super';
const SUPER_DIGEST = `super:${createHash('sha1').update(SUPER_USER).digest('base64')}`;

/** A member as zoo.cfg and reconfig list it. Apache's rule: one that joins has a client port. */
export function memberLine({ id, clientHost, peerHost, ports }: ServerPlace, role: Role): string {
  return `server.${id}=${peerHost}:${ports.quorum}:${ports.election}:${role};${clientHost}:${ports.client}`;
}

/** Milliseconds: so short that elections take tenths of a second, and sessions end while things are wrong. */
const TICK_MS = 200;

/**
 * Makes a directory for each server, with its zoo.cfg.
 *
 * Logs and snapshots are short, and the leader remembers few txns: whatever happens once a day elsewhere happens here
 * many times an hour.
 */
export function writeServerFiles(directory: string, places: readonly ServerPlace[]): readonly ServerFiles[] {
  const members = places.map((place) => memberLine(place, 'participant'));
  return places.map(({ id }) => {
    const own = join(directory, String(id));
    const paths = {
      id,
      directory: own,
      configuration: join(own, 'zoo.cfg'),
      log: join(own, 'log'),
      pid: join(own, 'pid'),
      data: join(own, 'data', 'version-2'),
      attic: join(own, 'attic'),
      established: join(own, 'established'),
    };
    mkdirSync(join(own, 'data'), { recursive: true });
    writeFileSync(join(own, 'data', 'myid'), `${id}\n`);
    const lines = [
      `dataDir=${join(own, 'data')}`,
      `tickTime=${TICK_MS}`,
      'initLimit=25',
      'syncLimit=10',
      'minSessionTimeout=1000',
      'maxSessionTimeout=20000',
      'maxClientCnxns=0',
      'snapCount=2000',
      'commitLogCount=500',
      'preAllocSize=64',
      'admin.enableServer=false',
      'standaloneEnabled=false',
      'reconfigEnabled=true',
      `DigestAuthenticationProvider.superDigest=${SUPER_DIGEST}`,
      // As a leader every second one sends a snapshot wherever its memory does not reach back, the others what they have logged.
      ...(id % 2 === 1 ? ['snapshotSizeFactor=-1'] : []),
      // All but the first have the sockets of clients in an I/O thread.
      ...(id > 1 ? ['clientThreads=1'] : []),
      ...members,
    ];
    const files: ServerFiles = { ...paths, firstConfiguration: `${lines.join('\n')}\n` };
    writeFileSync(files.configuration, files.firstConfiguration);
    return files;
  });
}

/**
 * A server that was removed does not start: its list of members is without it. Whoever wants it back gives it a list that has it, which
 * the others correct.
 */
export function listAgain({ id, configuration, firstConfiguration }: ServerFiles): void {
  const path = /^dynamicConfigFile=(.+)$/m.exec(readIfThere(configuration))?.[1];
  if (path === undefined || readIfThere(path).includes(`server.${id}=`)) return;
  writeFileSync(configuration, firstConfiguration);
}

/** By epoch: the zxid behind which it began; of all servers together. */
export function readEstablished(all: readonly ServerFiles[]): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  for (const { established } of all) {
    for (const line of readIfThere(established).split('\n')) {
      const [epoch, zxid] = line.split(' ');
      if (zxid !== undefined) found.set(Number(epoch), Number(zxid));
    }
  }
  return found;
}

/** '' when there is no such file. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
