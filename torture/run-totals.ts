import type { FaultKind, History, OperationRequest } from '@meerkat/simulator';

/** Totals of a run over its rounds. */
export class RunTotals {
  operations = 0;
  succeeded = 0;
  inDoubt = 0;
  writes = 0;
  watchEvents = 0;
  connections = 0;
  sessions = 0;
  serverStarts = 0;
  /** Membership changes acknowledged by the ensemble. */
  memberChanges = 0;
  readonly epochs: Set<number> = new Set();
  faults: ReadonlyMap<FaultKind, number> = new Map();
  /** Milliseconds between two acknowledged writes of any clients. */
  longestGapMs = 0;
  /** The longest of these while a majority could have worked, and which majority. */
  longestAbleMs = 0;
  longestAble = '';
  /** Milliseconds from the end of a round's faults until all servers work and are equal. */
  longestRecoveryMs = 0;
  longestCheckMs = 0;
  txns = 0;
  rounds = 0;
  /** Milliseconds of faults. */
  elapsedMs = 0;

  addRound(history: History): void {
    this.rounds++;
    let lastMs: number | null = null;
    for (const entry of history.entries) {
      if (entry.kind === 'notified') this.watchEvents++;
      else if (entry.kind === 'connected') {
        this.connections++;
        if (entry.isNewSession) this.sessions++;
      }
      if (entry.kind !== 'completed') continue;
      const { request, result, error } = entry.operation;
      if (error?.outcome === 'unknown') this.inDoubt++;
      if (result === null) continue;
      this.succeeded++;
      if (!isWrite(request)) continue;
      this.writes++;
      if (lastMs !== null) this.longestGapMs = Math.max(this.longestGapMs, entry.atMs - lastMs);
      lastMs = entry.atMs;
    }
    this.operations += history.operations.length;
  }
}

export function isWrite({ op }: OperationRequest): boolean {
  return op === 'create' || op === 'set' || op === 'delete' || op === 'multi';
}

/** Label and value of each line of the final table. */
export function tableOf(totals: RunTotals, violations: number): readonly (readonly [string, string])[] {
  const kinds = [...totals.faults].sort(([a], [b]) => (a < b ? -1 : 1));
  const faults = kinds.reduce((sum, [, count]) => sum + count, 0);
  const { operations, succeeded, inDoubt } = totals;
  return [
    ['time under faults', formatTime(totals.elapsedMs)],
    ['rounds', count(totals.rounds)],
    ['operations', count(operations)],
    ['… succeeded', `${count(succeeded)} (${count(totals.writes)} writes)`],
    ['… refused, nothing done', count(operations - succeeded - inDoubt)],
    ['… in doubt', count(inDoubt)],
    ['watch events told', count(totals.watchEvents)],
    ['sessions, connections', `${count(totals.sessions)}, ${count(totals.connections)}`],
    ['faults', count(faults)],
    ...kinds.map(([kind, many]): readonly [string, string] => [`… ${kind}`, count(many)]),
    ['changes of members acknowledged', count(totals.memberChanges)],
    ['server starts', count(totals.serverStarts)],
    ['epochs', count(totals.epochs.size)],
    ['txns committed', count(totals.txns)],
    ['longest gap between acknowledged writes', `${(totals.longestGapMs / 1000).toFixed(1)} s`],
    ['… while a majority could work', formatAble(totals)],
    ['longest time from healing to rest', `${(totals.longestRecoveryMs / 1000).toFixed(1)} s`],
    ['longest check of a round', `${(totals.longestCheckMs / 1000).toFixed(1)} s`],
    ['violations', count(violations)],
  ];
}

function formatAble({ longestAbleMs, longestAble }: RunTotals): string {
  return `${(longestAbleMs / 1000).toFixed(1)} s${longestAble === '' ? '' : ` (${longestAble})`}`;
}

/** Minimum activity per whole minute of faults for a run to prove anything; even a loaded machine exceeds it. */
const FLOORS_A_MINUTE = { faults: 3, memberChanges: 1, epochs: 0.5, writes: 60 } as const;
/** Minutes of faults after which each kind must have occurred. */
const ALL_KINDS_MINUTES = 30;
/** Limit for the time without a write while a majority could work: several elections and a start on a busy machine. */
const ABLE_MS_MAX = 60_000;

/** Describes what a run did too little of. @param kinds the requested fault kinds */
export function shortfallsOf(totals: RunTotals, kinds: readonly FaultKind[]): readonly string[] {
  const minutes = totals.elapsedMs / 60_000;
  const found: string[] = [];
  const demand = (what: string, many: number, aMinute: number): void => {
    const floor = Math.floor(aMinute * Math.floor(minutes));
    if (many < floor)
      found.push(`${what}: ${count(many)}, expected ${count(floor)} in ${formatTime(totals.elapsedMs)}`);
  };
  const disturbing = kinds.filter((kind) => kind !== 'members');
  const faults = disturbing.reduce((sum, kind) => sum + (totals.faults.get(kind) ?? 0), 0);
  if (disturbing.length > 0) demand('faults', faults, FLOORS_A_MINUTE.faults);
  if (kinds.includes('members'))
    demand('changes of members acknowledged', totals.memberChanges, FLOORS_A_MINUTE.memberChanges);
  if (disturbing.includes('crash')) demand('epochs', totals.epochs.size, FLOORS_A_MINUTE.epochs);
  demand('writes that succeeded', totals.writes, FLOORS_A_MINUTE.writes);
  for (const kind of minutes < ALL_KINDS_MINUTES ? [] : kinds)
    if (!totals.faults.has(kind)) found.push(`no fault of the kind ${kind}`);
  if (totals.longestAbleMs > ABLE_MS_MAX)
    found.push(
      `no write in ${(totals.longestAbleMs / 1000).toFixed(1)} s in which a majority could work (${totals.longestAble})`,
    );
  return found;
}

export function formatTime(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
