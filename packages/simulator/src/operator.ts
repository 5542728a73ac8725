import type { History } from './history.ts';
import type { VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualWorld } from './virtual-world.ts';

/** Longest pause, in milliseconds, between two sessions that are ended by hand. */
const PAUSE_MAX_MS = 1000;

/**
 * Ends sessions by hand, as an operator may, while their clients work: at followers, which ask their leader to do it, so that
 * a session is being closed while its client keeps sending requests; and at the leader, or a server that still believes it
 * leads.
 */
export async function endSessionsByHand(
  world: VirtualWorld,
  ensemble: VirtualEnsemble,
  history: History,
  isOver: () => boolean,
): Promise<void> {
  // A standalone server decides itself when sessions end; it has no leader to ask.
  if (ensemble.servers.length === 1) return;
  const random = world.random.fork('operator');
  for (;;) {
    await world.sleep(random.between(1, PAUSE_MAX_MS));
    if (isOver()) return;
    const servers = ensemble.servers.filter(({ core, isPaused }) => core?.endsSessions === true && !isPaused);
    if (servers.length === 0) continue;
    const server = random.pick(servers);
    const sessions = server.core?.view.sessions() ?? [];
    if (sessions.length === 0) continue;
    const { id } = random.pick(sessions);
    history.note({ kind: 'expired', sessionId: id });
    world.record('operator', `session 0x${id.toString(16)} is ended at ${server.host}`);
    server.expireSession(id);
  }
}
