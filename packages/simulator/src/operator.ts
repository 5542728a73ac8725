import type { History } from './history.ts';
import type { VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualWorld } from './virtual-world.ts';

/** Milliseconds from one session that is ended by hand to the next, at most. */
const PAUSE_MAX_MS = 1000;

/**
 * Ends sessions, as an operator may, while their clients work: at servers that follow, which ask their leader for it, so that
 * the end of a session is on its way while the client of it goes on asking; and at whoever leads, or still believes that it does.
 */
export async function endSessionsByHand(
  world: VirtualWorld,
  ensemble: VirtualEnsemble,
  history: History,
  isOver: () => boolean,
): Promise<void> {
  // A server of its own decides itself when sessions end: there is nobody that it would ask.
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
    world.tell('operator', `session 0x${id.toString(16)} is ended at ${server.host}`);
    server.expireSession(id);
  }
}
