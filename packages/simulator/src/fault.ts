import type { SeededRandom } from './seeded-random.ts';

/** What a nemesis can do; names of the option `--faults`. */
export const FAULT_KINDS = [
  'crash',
  'power',
  'stop',
  'restart-all',
  'pause',
  'wipe',
  'rot',
  'partition',
  'isolate',
  'one-way',
  'bridge',
  'port',
  'black-hole',
  'slow',
  'break',
  'flap',
  'disk-slow',
  'disk-stall',
  'disk-error',
  'disk-broken',
  'disk-full',
  'skew',
  'occupy',
] as const;
/**
 * Those, and kinds with a plan of their own: `members` change in an ensemble with spare servers, an `io-thread` dies where
 * servers have some, and `break-joins`, which must be named, interrupts servers that join their leader.
 */
export type FaultKind = (typeof FAULT_KINDS)[number] | 'members' | 'io-thread' | 'break-joins';
/** Kinds that seeds draw from. */
export const DRAWN_FAULT_KINDS: readonly FaultKind[] = [...FAULT_KINDS, 'members', 'io-thread'];
export const ALL_FAULT_KINDS: readonly FaultKind[] = [...DRAWN_FAULT_KINDS, 'break-joins'];
/** What `--faults` takes. */
export const NAMED_FAULT_KINDS: readonly FaultKind[] = [...FAULT_KINDS, 'break-joins'];

/**
 * One thing that goes wrong at a moment, and for a while: plain data, so that a plan can be printed, repeated and made
 * smaller.
 *
 * Hosts are names; `leader` stands for the server that leads at that moment.
 */
export interface Fault {
  readonly kind: FaultKind;
  /** Virtual milliseconds since the faults began. */
  readonly atMs: number;
  /** 0 for faults without a duration. */
  readonly durationMs: number;
  /** Hosts that the fault affects. */
  readonly hosts: readonly string[];
  /** Hosts that `hosts` are cut off from, or to which their links are slow; empty for faults without links. */
  readonly others: readonly string[];
  /** Seed for the details: which streams break, which bit rots, by how much a clock is wrong. */
  readonly chance: number;
}

/** `12.3s partition zk1,zk2 | zk3 for 2.5s #17` */
export function formatFault({ kind, atMs, durationMs, hosts, others, chance }: Fault): string {
  const cut = others.length === 0 ? '' : ` | ${others.join(',')}`;
  const during = durationMs === 0 ? '' : ` for ${durationMs}ms`;
  return `${atMs}ms ${kind} ${hosts.join(',')}${cut}${during} #${chance}`;
}

/** Parses what `formatFault` writes. @returns null for any other text */
export function parseFault(text: string): Fault | null {
  const match = /^(\d+)ms ([\w-]+) ([\w,]*)(?: \| ([\w,]+))?(?: for (\d+)ms)? #(\d+)$/.exec(text.trim());
  if (match === null) return null;
  const [, at, name, hosts = '', others = '', duration = '0', chance] = match;
  const kind = ALL_FAULT_KINDS.find((known) => known === name);
  if (kind === undefined) return null;
  return {
    kind,
    atMs: Number(at),
    durationMs: Number(duration),
    hosts: hosts === '' ? [] : hosts.split(','),
    others: others === '' ? [] : others.split(','),
    chance: Number(chance),
  };
}

export interface FaultPlanOptions {
  readonly kinds: readonly FaultKind[];
  /** Virtual milliseconds during which faults begin. */
  readonly durationMs: number;
  readonly servers: readonly string[];
  readonly clients: readonly string[];
  /** Mean pause between two faults in milliseconds. Default: drawn from 300 to 6000, so that some plans are storms. */
  readonly pauseMs?: number | undefined;
}

/** A plan that the generator decides. The same generator and options give the same plan. */
export function planFaults(random: SeededRandom, options: FaultPlanOptions): readonly Fault[] {
  const { kinds, durationMs, servers } = options;
  if (kinds.length === 0) return [];
  // A plan of few kinds finds other things than one of all: half of the plans have a handful of them.
  const few = kinds.filter(() => random.chance(0.3));
  const drawn = random.chance(0.5) && few.length > 0 ? few : kinds;
  const pauseMs = options.pauseMs ?? 300 * 20 ** random.fraction();
  const faults: Fault[] = [];
  let atMs = 0;
  for (;;) {
    atMs += Math.ceil(-Math.log(1 - random.fraction()) * pauseMs);
    if (atMs >= durationMs) return faults;
    const kind = random.pick(drawn);
    const { hosts, others } = drawTargets(random, kind, servers, options.clients);
    faults.push({
      kind,
      atMs,
      durationMs: ENDS_AT_ONCE.has(kind) ? 0 : drawDuration(random),
      hosts,
      others,
      chance: random.uint32(),
    });
  }
}

const ENDS_AT_ONCE: ReadonlySet<FaultKind> = new Set<FaultKind>(['break', 'disk-error']);

/** Changes of the membership, some of them at once. */
export function planChanges(random: SeededRandom, durationMs: number): readonly Fault[] {
  const pauseMs = 500 * 10 ** random.fraction();
  const faults: Fault[] = [];
  for (let atMs = random.between(0, 2000); atMs < durationMs; ) {
    faults.push({ kind: 'members', atMs, durationMs: 0, hosts: [], others: [], chance: random.uint32() });
    atMs += Math.ceil(-Math.log(1 - random.fraction()) * pauseMs);
  }
  return faults;
}

/** Deaths of I/O threads, whose processes keep running. */
export function planThreadDeaths(
  random: SeededRandom,
  durationMs: number,
  servers: readonly string[],
): readonly Fault[] {
  const pauseMs = 2000 * 5 ** random.fraction();
  const faults: Fault[] = [];
  for (let atMs = random.between(0, 4000); atMs < durationMs; ) {
    const hosts = [drawServer(random, servers)];
    faults.push({ kind: 'io-thread', atMs, durationMs: 0, hosts, others: [], chance: random.uint32() });
    atMs += Math.ceil(-Math.log(1 - random.fraction()) * pauseMs);
  }
  return faults;
}

/** Most of the time, servers that start to synchronize lose their leader a moment later. */
export function planBrokenJoins(
  random: SeededRandom,
  durationMs: number,
  servers: readonly string[],
): readonly Fault[] {
  const faults: Fault[] = [];
  for (let atMs = random.between(0, 4000); atMs < durationMs; ) {
    const lastsMs = random.between(2000, 20_000);
    const during = { atMs, durationMs: lastsMs, hosts: servers, others: [], chance: random.uint32() };
    faults.push({ kind: 'break-joins', ...during });
    atMs += lastsMs + random.between(0, 4000);
  }
  return faults;
}

/** Mostly short; sometimes longer than sessions and elections last. */
function drawDuration(random: SeededRandom): number {
  return Math.ceil(10 * 1000 ** random.fraction());
}

/** Often the leader: faults of other servers break much less. */
function drawServer(random: SeededRandom, servers: readonly string[]): string {
  return random.chance(0.35) ? LEADER : random.pick(servers);
}

/** The server that leads when the fault happens; none when there is no leader. */
export const LEADER = 'leader';

interface Targets {
  readonly hosts: readonly string[];
  readonly others: readonly string[];
}

function drawTargets(
  random: SeededRandom,
  kind: FaultKind,
  servers: readonly string[],
  clients: readonly string[],
): Targets {
  switch (kind) {
    case 'restart-all':
      return { hosts: servers, others: [] };
    case 'partition':
      return split(random, random.chance(0.7) ? servers : [...servers, ...clients]);
    case 'isolate': {
      const host = random.chance(0.8) || clients.length === 0 ? drawServer(random, servers) : random.pick(clients);
      // The clients of an isolated server may still reach it: it serves reads that are getting old.
      const others = random.chance(0.5) ? servers : [...servers, ...clients];
      return { hosts: [host], others: others.filter((other) => other !== host) };
    }
    case 'one-way': {
      const { hosts, others } = split(random, [...servers, ...clients]);
      return random.chance(0.5) ? { hosts: [drawServer(random, servers)], others: servers } : { hosts, others };
    }
    // Two halves that are cut off from each other, and one server that reaches both.
    case 'bridge': {
      const bridge = random.pick(servers);
      return split(
        random,
        servers.filter((server) => server !== bridge),
      );
    }
    case 'slow':
    case 'flap': {
      const host = drawServer(random, servers);
      const others = [...servers, ...clients].filter((other) => other !== host && random.chance(0.5));
      return { hosts: [host], others };
    }
    case 'break':
      return { hosts: random.chance(0.3) ? servers : [drawServer(random, servers)], others: [] };
    case 'skew':
      return {
        hosts: [random.chance(0.8) ? drawServer(random, servers) : random.pick([...servers, ...clients])],
        others: [],
      };
    default:
      return { hosts: [drawServer(random, servers)], others: [] };
  }
}

/** Two random groups; neither is empty if there are at least two hosts. */
function split(random: SeededRandom, all: readonly string[]): Targets {
  const hosts: string[] = [];
  const others: string[] = [];
  for (const host of all) (random.chance(0.5) ? hosts : others).push(host);
  const from = hosts.length > 1 ? hosts : others;
  const to = hosts.length === 0 ? hosts : others;
  if (to.length === 0 && from.length > 1) to.push(from.pop()!);
  return { hosts, others };
}
