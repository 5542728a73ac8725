import { type Client, joinPath, NoAuthError, NoNodeError, type Stat } from '@meerkat/client';
import type { ContenderInfo, LineInfo, SessionInfo } from '../api/messages.ts';
import { describeContender, type LineZnode } from './contender.ts';
import type { Call } from './znode-reader.ts';

/*
 * Barriers, of Curator, kazoo and our recipes:
 *
 *     double barrier   PATH/UUID     a member: ephemeral, named by a UUID (kazoo: without dashes)
 *                      PATH/ready    there were enough members, and they are inside
 *     barrier          PATH          one persistent znode with a name chosen by the user: recognised if it or its
 *                                    parent has "barrier" in its name; waiters watch it
 */

export interface BarrierPaths {
  /** Names of members by the path of the double barrier. */
  readonly doubles: ReadonlyMap<string, readonly string[]>;
  readonly singles: readonly string[];
}

/** Candidates for barriers, by name. */
export function findBarriers(paths: Iterable<string>): BarrierPaths {
  const doubles = new Map<string, string[]>();
  const singles: string[] = [];
  for (const path of paths) {
    const at = path.lastIndexOf('/');
    const { length } = path;
    const nameLength = length - at - 1;
    if ((nameLength === 36 || nameLength === 32) && isUuid(path.slice(at + 1))) {
      const parent = at === 0 ? '/' : path.slice(0, at);
      const names = doubles.get(parent);
      if (names === undefined) doubles.set(parent, [path.slice(at + 1)]);
      else names.push(path.slice(at + 1));
    } else if (path.includes('arrier') && SINGLE.test(path) && !OTHERS.test(path)) singles.push(path);
  }
  return { doubles, singles };
}

/**
 * Reads which of them are barriers, and who waits there. @param sessions the watches of each session, as far as servers
 * report
 */
export async function readBarriers(
  client: Client,
  paths: Iterable<string>,
  sessions: readonly SessionInfo[],
  call: Call,
): Promise<readonly LineInfo[]> {
  const { doubles, singles } = findBarriers(paths);
  const addresses = new Map(sessions.map(({ session, client: address }) => [session, address]));
  const found: LineInfo[] = [];
  for (const [path, names] of [...doubles].slice(0, BARRIERS_MAX)) {
    const barrier = await readDouble(client, path, names, addresses, call);
    if (barrier !== null) found.push(barrier);
  }
  const stats = await Promise.all(singles.slice(0, BARRIERS_MAX).map((path) => client.exists(path, call)));
  for (const [i, stat] of stats.entries()) {
    if (stat !== null && isBarrier(stat)) found.push(describeSingle(singles[i]!, sessions));
  }
  return found;
}

async function readDouble(
  client: Client,
  path: string,
  names: readonly string[],
  addresses: ReadonlyMap<string, string>,
  call: Call,
): Promise<LineInfo | null> {
  const read = async (name: string): Promise<LineZnode | null> => {
    try {
      const { data, stat } = await client.get(joinPath(path, name), call);
      return { name, data, stat };
    } catch (error) {
      if (error instanceof NoNodeError || error instanceof NoAuthError) return null;
      throw error;
    }
  };
  // Many things are named by UUIDs: mostly the first one decides.
  const first = await read(names[0]!);
  if (first !== null && !isMember(first)) return null;
  const others = await Promise.all(names.slice(1, MEMBERS_MAX).map(read));
  const members = [first, ...others].filter((one) => one !== null);
  if (members.length === 0 || !members.every(isMember)) return null;
  members.sort((a, b) => (a.stat.czxid < b.stat.czxid ? -1 : 1));
  const isOpen = (await client.exists(joinPath(path, 'ready'), call)) !== null;
  return {
    path,
    kind: 'double barrier',
    layout: names[0]!.length === 32 ? 'kazoo' : 'curator',
    total: names.length,
    contenders: members.map((one) => describeContender(one, addresses, { isHolder: isOpen, waitsFor: [] })),
    places: null,
  };
}

/** Service registries also name their instances by UUIDs; those contain JSON. */
function isMember({ data, stat }: LineZnode): boolean {
  return isOfSession(stat) && data[0] !== 0x7b;
}

/** Containers and znodes with a TTL have special values in place of the session of ephemeral ones. */
function isOfSession({ ephemeralOwner }: Stat): boolean {
  const owner = BigInt.asUintN(64, ephemeralOwner);
  return owner !== 0n && owner !== 1n << 63n && owner >> 56n !== 0xffn;
}

/** A container or a directory of barriers is not a barrier itself. */
function isBarrier({ ephemeralOwner, numChildren, cversion }: Stat): boolean {
  return ephemeralOwner === 0n && numChildren === 0 && cversion === 0;
}

function describeSingle(path: string, sessions: readonly SessionInfo[]): LineInfo {
  const waiting = sessions.filter(({ watches, isOurs }) => !isOurs && watches.includes(path));
  const contenders = waiting.slice(0, MEMBERS_MAX).map(({ session, client }): ContenderInfo => {
    return { name: session, session, client, sinceMs: null, token: null, data: '', isHolder: false, waitsFor: [] };
  });
  return { path, kind: 'barrier', layout: 'any', total: waiting.length, contenders, places: null };
}

/** With or without dashes. */
export function isUuid(name: string): boolean {
  return UUID.test(name);
}

const UUID = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/;
const SINGLE = /barrier[^/]*(?:\/[^/]+)?$/i;
/** The ready znode of a double barrier, sequential znodes, and ZooKeeper's own znodes. */
const OTHERS = /\/ready$|\d{10}$|^\/zookeeper\//;
const BARRIERS_MAX = 200;
const MEMBERS_MAX = 100;
