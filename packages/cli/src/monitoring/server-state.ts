import { askWord, type MonitoredServer, NoAnswerError } from '@meerkat/console/monitoring';

/** What `srvr` says of a server. */
export interface ServerState {
  readonly server: MonitoredServer;
  /** `leader`, `follower`, `observer`, `standalone`, `read-only`; `looking` without a leader, null of a server that does not answer. */
  readonly role: string | null;
  /** Why nothing more is known; null when the server has answered. */
  readonly problem: string | null;
  readonly version: string | null;
  /** A zxid as 64 bits; null when it is not known. */
  readonly zxid: bigint | null;
  /** Milliseconds since the last reset. */
  readonly latencyMin: number;
  readonly latencyAverage: number;
  readonly latencyMax: number;
  readonly received: number;
  readonly sent: number;
  readonly connections: number;
  readonly outstanding: number;
  readonly znodes: number;
}

/** Asks each server, all at once. @throws AbortError */
export function readStates(
  servers: readonly MonitoredServer[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ServerState[]> {
  return Promise.all(servers.map((server) => readState(server, timeoutMs, signal)));
}

async function readState(server: MonitoredServer, timeoutMs: number, signal: AbortSignal): Promise<ServerState> {
  try {
    const text = await askWord(server, 'srvr', timeoutMs, signal);
    if (text.startsWith('Zookeeper version:')) return parseState(server, text);
    const beginning = JSON.stringify(text.slice(0, 40));
    return { ...NOTHING, server, problem: `${server.name} is no ZooKeeper: it answers ${beginning} to srvr` };
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    return { ...NOTHING, server, role: error.kind === 'not serving' ? 'looking' : null, problem: error.message };
  }
}

/** Reads the answer to `srvr`, of our servers and Apache's. */
export function parseState(server: MonitoredServer, text: string): ServerState {
  const find = (pattern: RegExp): string | null => pattern.exec(text)?.[1] ?? null;
  const numberOf = (pattern: RegExp): number => Number(find(pattern) ?? 0);
  const [, min = '0', average = '0', max = '0'] =
    /^Latency min\/avg\/max: ([\d.]+)\/([\d.E-]+)\/([\d.]+)$/m.exec(text) ?? [];
  const zxid = find(/^Zxid: (0x[0-9a-f]+)$/m);
  return {
    server,
    role: find(/^Mode: (.+)$/m),
    problem: null,
    // Debian's build says 3.8.0-${mvngit.commit.id}.
    version: find(/^Zookeeper version: ([^,\s]+)/m)?.replace(/-\$\{.*\}$/, '') ?? null,
    zxid: zxid === null ? null : BigInt(zxid),
    latencyMin: Number(min),
    latencyAverage: Number(average),
    latencyMax: Number(max),
    received: numberOf(/^Received: (\d+)$/m),
    sent: numberOf(/^Sent: (\d+)$/m),
    connections: numberOf(/^Connections: (\d+)$/m),
    outstanding: numberOf(/^Outstanding: (\d+)$/m),
    znodes: numberOf(/^Node count: (\d+)$/m),
  };
}

const NOTHING: Omit<ServerState, 'server' | 'problem'> = {
  role: null,
  version: null,
  zxid: null,
  latencyMin: 0,
  latencyAverage: 0,
  latencyMax: 0,
  received: 0,
  sent: 0,
  connections: 0,
  outstanding: 0,
  znodes: 0,
};

/** Txns that a server is behind the one that is furthest; null when it is of another epoch or unknown. */
export function lagOf({ zxid }: ServerState, all: readonly ServerState[]): number | null {
  if (zxid === null) return null;
  const furthest = all.reduce((most, state) => (state.zxid !== null && state.zxid > most ? state.zxid : most), 0n);
  return furthest >> 32n === zxid >> 32n ? Number(furthest - zxid) : null;
}

/** One thing that is not as it should be. */
export interface HealthFinding {
  readonly server: string;
  readonly isOk: boolean;
  readonly text: string;
}

/** The health of a service, from the states of all its servers. */
export function findProblems(states: readonly ServerState[]): HealthFinding[] {
  const findings: HealthFinding[] = states.map(({ server, role, problem }) => ({
    server: server.name,
    isOk: problem === null,
    text: problem ?? `serves clients as ${role ?? 'a server of unknown role'}`,
  }));
  const leaders = states.filter(({ role }) => role === 'leader');
  const followers = states.filter(({ role }) => role === 'follower' || role === 'observer');
  if (leaders.length > 1) {
    const names = leaders.map(({ server }) => server.name).join(' and ');
    findings.push({ server: 'all', isOk: false, text: `${names} lead at once: are they of one ensemble?` });
  } else if (leaders.length === 0 && followers.length > 0) {
    findings.push({ server: 'all', isOk: false, text: 'none of these servers leads: name all servers with --server' });
  }
  for (const state of states) {
    const lag = lagOf(state, states);
    if (lag !== null && lag > LAG_MAX) {
      findings.push({ server: state.server.name, isOk: false, text: `is ${lag} txns behind` });
    }
    if (state.latencyAverage > LATENCY_MAX_MS) {
      const text = `takes ${state.latencyAverage} ms for a request on the average: look at its disk (fsynctime in mntr)`;
      findings.push({ server: state.server.name, isOk: false, text });
    }
  }
  return findings;
}

/** More than what a busy service is behind while it is asked. */
const LAG_MAX = 10_000;
const LATENCY_MAX_MS = 100;
