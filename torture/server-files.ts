import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerPlace } from './network.ts';

/** Paths of one server's files. */
export interface ServerFiles {
  readonly id: number;
  readonly directory: string;
  readonly configuration: string;
  /** Initial configuration, in which all servers are members. */
  readonly firstConfiguration: string;
  /** Its output, over all restarts. */
  readonly log: string;
  /** Holds its process id while it runs. */
  readonly pid: string;
  /** `version-2`, with transaction logs and snapshots. */
  readonly data: string;
  /** Logs that it has removed. */
  readonly attic: string;
  /** Epochs that it has led, each with the zxid after which it started. */
  readonly established: string;
}

export type Role = 'participant' | 'observer';

/** Name and password of the user who may change the members. */
export const SUPER_USER = 'super:super';
const SUPER_DIGEST = `super:${createHash('sha1').update(SUPER_USER).digest('base64')}`;

/** A member line as in zoo.cfg and reconfig. As in Apache's, a joining member must have a client port. */
export function memberLine({ id, clientHost, peerHost, ports }: ServerPlace, role: Role): string {
  return `server.${id}=${peerHost}:${ports.quorum}:${ports.election}:${role};${clientHost}:${ports.client}`;
}

/** Milliseconds. Short, so that elections take tenths of a second, and sessions expire during faults. */
const TICK_MS = 200;

/**
 * Creates a directory for each server, with its zoo.cfg.
 *
 * Logs and snapshots are short and the leader keeps few txns in memory, so that events that are rare in production
 * happen many times an hour.
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
      // When its memory does not reach back far enough, a leader with an odd id sends a snapshot, others their log.
      ...(id % 2 === 1 ? ['snapshotSizeFactor=-1'] : []),
      // All but the first serve client sockets in an I/O thread.
      ...(id > 1 ? ['clientThreads=1'] : []),
      ...members,
    ];
    const files: ServerFiles = { ...paths, firstConfiguration: `${lines.join('\n')}\n` };
    writeFileSync(files.configuration, files.firstConfiguration);
    return files;
  });
}

/**
 * A removed server does not start: it is not in its own member list. To bring it back, it is given a list that contains
 * it, which the other servers correct.
 */
export function listAgain({ id, configuration, firstConfiguration }: ServerFiles): void {
  const path = /^dynamicConfigFile=(.+)$/m.exec(readIfThere(configuration))?.[1];
  if (path === undefined || readIfThere(path).includes(`server.${id}=`)) return;
  writeFileSync(configuration, firstConfiguration);
}

/** For each epoch, the zxid after which it started; of all servers together. */
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
