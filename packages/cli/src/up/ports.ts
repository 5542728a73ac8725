import { once } from 'node:events';
import { createServer } from 'node:net';

/** The ports of one server of the ensemble on 127.0.0.1. */
export interface MemberPorts {
  readonly client: number;
  readonly quorum: number;
  readonly election: number;
}

/** From the client port, as 2888 and 3888 are from 2181. */
const QUORUM_OFFSET = 707;
const ELECTION_OFFSET = 1707;
const PORT_MAX = 65_535;

/**
 * Chooses ports that are free at this moment: client ports from `first` on, the others as far from it as ZooKeeper's are.
 *
 * @param onTaken called for each client port that is in use
 * @returns null when there are not enough
 */
export async function choosePorts(
  count: number,
  first: number,
  onTaken: (port: number) => void,
): Promise<readonly MemberPorts[] | null> {
  const chosen = new Set<number>();
  const next = async (from: number, onSkipped?: (port: number) => void): Promise<number | null> => {
    for (let port = from; port <= PORT_MAX; port++) {
      if (chosen.has(port)) continue;
      if (await isFree(port)) {
        chosen.add(port);
        return port;
      }
      onSkipped?.(port);
    }
    return null;
  };
  const ports: MemberPorts[] = [];
  let client: number | null = first - 1;
  for (let i = 0; i < count; i++) {
    client = await next(client + 1, onTaken);
    const quorum = await next(first + QUORUM_OFFSET);
    const election = await next(first + ELECTION_OFFSET);
    if (client === null || quorum === null || election === null) return null;
    ports.push({ client, quorum, election });
  }
  return ports;
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  try {
    probe.listen(port, '127.0.0.1');
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
