import { parseArgs } from 'node:util';
import { ALL_FAULT_KINDS, type FaultKind } from '@meerkat/simulator';

export interface TortureOptions {
  readonly servers: number;
  /** Total duration of faults over all rounds. */
  readonly minutes: number;
  readonly clients: number;
  /** Determines the fault plan and the workload. */
  readonly seed: number;
  /** Null: all kinds that the network supports. */
  readonly faults: readonly FaultKind[] | null;
  readonly usesProxies: boolean;
  /** Keeps the data directories even when the run succeeds. */
  readonly keeps: boolean;
  /** File that the summary table is also written to, as Markdown. */
  readonly summary: string | null;
}

/** The simulator's fault kinds that can be injected into processes, files and sockets of one machine. */
export const REAL_FAULTS = [
  'crash',
  'stop',
  'restart-all',
  'pause',
  'partition',
  'isolate',
  'one-way',
  'bridge',
  'port',
  'slow',
  'break',
  'disk-slow',
  'disk-stall',
  'disk-error',
  'disk-full',
  'members',
] as const satisfies readonly FaultKind[];
/** The kind among them that has its own plan. */
export const MEMBERS = 'members';
export type RealFault = (typeof REAL_FAULTS)[number];

/** Fault kinds that need a proxy between the processes. */
export const PROXY_FAULTS: readonly FaultKind[] = ['slow', 'break'];

/** Each client has its own address on each server: 198.18.<server>.<100 + client>. */
const CLIENTS_MAX = 100;

export const HELP = `npm run torture -- [options]

Starts an ensemble of server processes, lets clients work with it while things go wrong, and checks that every promise was
kept. As root, where namespaces can be made, each server has a network of its own; otherwise proxies stand between them.

  --servers 3|5       servers of the ensemble (3)
  --minutes N         of faults (5); parts such as 0.5 too
  --clients N         that work at once, 1 to ${CLIENTS_MAX} (8)
  --seed S            decides the faults and what the clients ask for (by chance; it is told)
  --faults KIND,...   only these: ${REAL_FAULTS.slice(0, 8).join(', ')},
                      ${REAL_FAULTS.slice(8).join(', ')}; or none
  --proxies           proxies instead of namespaces
  --keep              the data directories and logs stay when nothing was wrong, too
  --summary FILE      the table at the end, as Markdown
  --help              this text

Ctrl-C heals everything, checks what there is, and cleans up. The exit code is 1 when an invariant was broken; what the servers
have written stays then, and the last lines say where. It is 3 when less has happened than would prove anything.`;

/** @returns an error message when the command line is invalid; null for --help */
export function parseOptions(args: readonly string[], randomSeed: number): TortureOptions | string | null {
  let values: Partial<Record<string, string | boolean>>;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        servers: { type: 'string' },
        minutes: { type: 'string' },
        clients: { type: 'string' },
        seed: { type: 'string' },
        faults: { type: 'string' },
        proxies: { type: 'boolean' },
        keep: { type: 'boolean' },
        summary: { type: 'string' },
        help: { type: 'boolean' },
      },
    }));
  } catch (error) {
    return (error as Error).message;
  }
  if (values['help'] === true) return null;
  const servers = numberOf(values['servers'], 3);
  if (servers !== 3 && servers !== 5) return '--servers: expected 3 or 5';
  const minutes = numberOf(values['minutes'], 5);
  if (!(minutes > 0 && minutes <= MINUTES_MAX)) return `--minutes: expected more than 0 and at most ${MINUTES_MAX}`;
  const clients = numberOf(values['clients'], 8);
  if (!Number.isInteger(clients) || clients < 1 || clients > CLIENTS_MAX)
    return `--clients: expected 1 to ${CLIENTS_MAX}`;
  const seed = numberOf(values['seed'], randomSeed);
  if (!Number.isSafeInteger(seed) || seed < 0) return '--seed: expected a whole number';
  const faults = parseFaults(values['faults']);
  if (typeof faults === 'string') return faults;
  return {
    servers,
    minutes,
    clients,
    seed,
    faults,
    usesProxies: values['proxies'] === true,
    keeps: values['keep'] === true,
    summary: typeof values['summary'] === 'string' ? values['summary'] : null,
  };
}

/** A week. */
const MINUTES_MAX = 10_080;

function numberOf(value: string | boolean | undefined, otherwise: number): number {
  if (typeof value !== 'string') return otherwise;
  return /^\d+(\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
}

function parseFaults(value: string | boolean | undefined): readonly RealFault[] | null | string {
  if (typeof value !== 'string') return null;
  if (value === 'none') return [];
  const kinds: RealFault[] = [];
  for (const name of value.split(',')) {
    const kind = REAL_FAULTS.find((known) => known === name);
    if (kind !== undefined) kinds.push(kind);
    else if (ALL_FAULT_KINDS.some((known) => known === name)) return `--faults: "${name}" only exists in the simulator`;
    else return `--faults: there is no "${name}"; there are ${REAL_FAULTS.join(', ')}, or none`;
  }
  return kinds;
}
