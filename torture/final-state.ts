import { bytes, type Client, connect, NoNodeError, type Stat } from '@meerkat/client';
import type { FinalState, FinalZnode } from '@meerkat/simulator';
import type { Inspection } from './messages.ts';
import type { TortureNetwork } from './network.ts';

/** Reads the whole tree of one server as any client may: data, stats and children. */
export async function readTree(network: TortureNetwork, server: number, timeoutMs: number): Promise<FinalZnode[]> {
  const client = await connect({
    servers: network.connectString(1, [server]),
    sessionTimeoutMs: 20_000,
    connectTimeoutMs: timeoutMs,
  });
  try {
    const znodes: FinalZnode[] = [];
    for (const waiting = ['/']; ; ) {
      const path = waiting.pop();
      if (path === undefined) return znodes;
      waiting.push(...(await readZnode(client, path, timeoutMs, znodes)));
    }
  } finally {
    await client.close();
  }
}

/** @returns paths of its children */
async function readZnode(client: Client, path: string, timeoutMs: number, znodes: FinalZnode[]): Promise<string[]> {
  try {
    const [{ data, stat }, { children }] = await Promise.all([
      client.get(path, { codec: bytes, timeoutMs }),
      client.children(path, { timeoutMs }),
    ]);
    znodes.push({ path, data, stat: persistedStat(stat) });
    return children.map((name) => (path === '/' ? `/${name}` : `${path}/${name}`));
  } catch (error) {
    // Nothing is deleted at this stage: a listed child that does not exist is missing, and is reported as such.
    if (error instanceof NoNodeError) return [];
    throw error;
  }
}

function persistedStat(stat: Stat): FinalZnode['stat'] {
  const { ctime, mtime, version, cversion, aversion, numChildren, ephemeralOwner } = stat;
  return {
    czxid: Number(stat.czxid),
    mzxid: Number(stat.mzxid),
    pzxid: Number(stat.pzxid),
    ctime,
    mtime,
    version,
    // The cversion that clients see is twice the number of children ever created, minus the current children.
    cversion: (cversion + numChildren) / 2,
    aversion,
    ephemeralOwner,
  };
}

export function makeFinalState(server: number, inspection: Inspection, znodes: readonly FinalZnode[]): FinalState {
  return {
    server,
    lastZxid: inspection.lastZxid,
    treeDigest: BigInt.asIntN(64, parseHex(inspection.treeDigest)),
    znodes,
    sessions: new Map(inspection.sessions.map(([id, timeoutMs]) => [parseHex(id), timeoutMs])),
  };
}

function parseHex(text: string): bigint {
  return text.startsWith('-') ? -BigInt(`0x${text.slice(1)}`) : BigInt(`0x${text}`);
}
