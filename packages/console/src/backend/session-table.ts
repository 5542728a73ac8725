import type { SessionInfo, SessionsInfo } from '../api/messages.ts';
import { askWord, NoAnswerError } from './four-letter-word.ts';
import type { MonitoredServer } from './options.ts';

/** Who is connected to which server, what it holds and what it watches: from `cons`, `dump` and `wchc` of every server. */
export async function readSessions(servers: readonly MonitoredServer[], ours: string | null): Promise<SessionsInfo> {
  const problems = new Set<string>();
  const ask = async (server: MonitoredServer, word: string): Promise<string> => {
    try {
      return (await askWord(server, word, ANSWER_MS)).text;
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
  // Followers know of all ephemerals, too: one that tells is enough, and none is counted twice.
  const ephemerals = new Map<string, Set<string>>();
  const watches = new Map<string, Set<string>>();
  for (const { dump, wchc } of answers) {
    addHeld(ephemerals, dump.split('Sessions with Ephemerals')[1]?.split('Connections dump:')[0] ?? '');
    addHeld(watches, wchc);
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

/** Reads the answer to `cons`; connections without a session are left out. */
export function parseConnections(
  server: string,
  text: string,
): Omit<SessionInfo, 'ephemerals' | 'watches' | 'isOurs'>[] {
  return [...text.matchAll(/^ \/(\S+?)\[[0-9a-f]+\]\((.*)\)$/gm)].flatMap(([, client = '', list = '']) => {
    const fields = new Map(list.split(',').map((field) => field.split('=', 2) as [string, string]));
    const session = fields.get('sid');
    if (session === undefined) return [];
    const numberOf = (name: string): number => Number(fields.get(name) ?? 0);
    return [
      {
        session,
        client,
        server,
        timeoutMs: numberOf('to'),
        establishedMs: numberOf('est'),
        lastZxid: fields.get('lzxid') ?? '',
        operation: fields.get('lop') ?? '',
        latencyAverageMs: numberOf('avglat'),
        latencyMaxMs: numberOf('maxlat'),
      },
    ];
  });
}

/** A line for each session, and its paths below, as `wchc` and the second half of `dump` have it. */
function addHeld(held: Map<string, Set<string>>, text: string): void {
  let paths: Set<string> | null = null;
  for (const line of text.split('\n')) {
    const heading = /^(0x[0-9a-f]+):?$/.exec(line);
    if (heading?.[1] !== undefined) {
      paths = held.get(heading[1]) ?? new Set();
      held.set(heading[1], paths);
    } else if (line.startsWith('\t') && paths !== null) paths.add(line.slice(1));
  }
}

const ANSWER_MS = 5000;
