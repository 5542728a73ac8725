import type { SessionInfo, SessionsInfo } from '../api/messages.ts';
import { askWord, NoAnswerError } from './four-letter-word.ts';
import { type Held, parseConnections, parseHeld } from './holders.ts';
import type { MonitoredServer } from './options.ts';

/**
 * Which client is connected to which server, what it holds and watches: from `cons`, `dump` and `wchc` of every server.
 */
export async function readSessions(servers: readonly MonitoredServer[], ours: string | null): Promise<SessionsInfo> {
  const problems = new Set<string>();
  const ask = async (server: MonitoredServer, word: string): Promise<string> => {
    try {
      return await askWord(server, word, ANSWER_MS);
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      problems.add(error.message);
      return '';
    }
  };
  const answers = await Promise.all(
    servers.map(async (server) => {
      const [cons, dump, wchc] = await Promise.all(['cons', 'dump', 'wchc'].map((word) => ask(server, word)));
      return { server, cons: cons ?? '', dump: dump ?? '', wchc: wchc ?? '' };
    }),
  );
  // Followers also know all ephemeral znodes: one answer suffices, and none is counted twice.
  const ephemerals = new Map<string, Set<string>>();
  const watches = new Map<string, Set<string>>();
  for (const { server, dump, wchc } of answers) {
    for (const held of parseHeld(server.name, dump)) addHeld(ephemerals, held);
    for (const watched of parseHeld(server.name, wchc)) addHeld(watches, watched);
  }
  const sessions = answers.flatMap(({ server, cons }) =>
    parseConnections(server.name, cons).map((session): SessionInfo => {
      return {
        ...session,
        ephemerals: [...(ephemerals.get(session.session) ?? [])].sort(),
        watches: [...(watches.get(session.session) ?? [])].sort(),
        isOurs: session.session === ours,
      };
    }),
  );
  return { sessions, problems: [...problems].sort() };
}

function addHeld(held: Map<string, Set<string>>, { session, path }: Held): void {
  const paths = held.get(session);
  if (paths === undefined) held.set(session, new Set([path]));
  else paths.add(path);
}

const ANSWER_MS = 5000;
