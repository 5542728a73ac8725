import { type Client, ConnectionLossError } from '@meerkat/client';
import type { VirtualWorld } from '@meerkat/simulator';
import { runSolo } from './fleet.ts';

export interface Stage {
  readonly world: VirtualWorld;
  readonly client: Client;
  readonly other: Client;
}

/** Runs a program with two clients on one server that never fails; hosts `app` and `other`. */
export function onStage(program: (stage: Stage) => Promise<void>): Promise<void> {
  return runSolo(1, async (fleet) => {
    const options = { sessionTimeoutMs: 10_000 };
    const client = await fleet.connectAs('app', options);
    const other = await fleet.connectAs('other', options);
    await program({ world: fleet.world, client, other });
    await Promise.all([client.close(), other.close()]);
  });
}

export async function bytesAt(client: Client, path: string): Promise<number[]> {
  return [...(await client.get(path)).data];
}

/** The next set of a client is applied, and its reply lost. */
export function loseReply(client: Client): void {
  const set = client.set.bind(client);
  client.set = async (...call: Parameters<Client['set']>) => {
    client.set = set;
    await set(...call);
    throw new ConnectionLossError({ operation: 'set', path: call[0] });
  };
}
