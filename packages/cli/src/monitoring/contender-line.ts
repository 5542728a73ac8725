import { type Client, NoNodeError, type Stat } from '@meerkat/client';
import { askWord, NoAnswerError, parseConnections } from '@meerkat/console/monitoring';
import { ANSWER_MS } from '../commands/status.ts';
import type { Context } from '../run/context.ts';

/** One sequential znode in the line of a lock, an election or a queue. */
export interface Contender {
  readonly name: string;
  readonly sequence: number;
  readonly stat: Stat;
  readonly data: string;
  client: string | null;
}

/** All contenders, the first one first. @throws NoNodeError when there is no such znode */
export async function readLine({ call }: Context, client: Client, path: string): Promise<Contender[]> {
  const { children } = await client.children(path, call);
  const found = await Promise.all(
    children.flatMap((name) => {
      const [, digits] = /(\d{10})$/.exec(name) ?? [];
      if (digits === undefined) return [];
      return [readContender(name, Number(digits))];
    }),
  );
  return found.filter((contender) => contender !== null).toSorted((a, b) => a.sequence - b.sequence);

  async function readContender(name: string, sequence: number): Promise<Contender | null> {
    try {
      const { data, stat } = await client.get(`${path === '/' ? '' : path}/${name}`, call);
      return { name, sequence, stat, data: shown(data), client: null };
    } catch (error) {
      // It has left meanwhile.
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }
}

/** Addresses of clients by session; of those servers that say so. */
export async function readClients(context: Context): Promise<ReadonlyMap<string, string>> {
  if (context.isShell) return new Map();
  const servers = await context.servers();
  const found = await Promise.all(
    servers.map(async (server) => {
      try {
        return parseConnections(
          server.name,
          await askWord(server, 'cons', context.timeoutMs ?? ANSWER_MS, context.signal),
        );
      } catch (error) {
        if (error instanceof NoAnswerError) return [];
        throw error;
      }
    }),
  );
  return new Map(found.flat().map(({ session, client }) => [session, client]));
}

/** The session that a znode belongs to; null of one that is not ephemeral. */
export function sessionOf({ stat }: Contender): string | null {
  const owner = BigInt.asUintN(64, stat.ephemeralOwner);
  return owner === 0n ? null : `0x${owner.toString(16)}`;
}

/** What contenders write into their znodes is text mostly: a host, a process. */
function shown(data: Uint8Array | null): string {
  const text = new TextDecoder().decode(data ?? new Uint8Array());
  return text.replace(/\p{Cc}+/gu, ' ').slice(0, 60);
}
