import type { FaultKind, History, OperationRequest } from '@meerkat/simulator';

/** Figures of a run, round after round. */
export class RunTotals {
  operations = 0;
  succeeded = 0;
  inDoubt = 0;
  writes = 0;
  watchEvents = 0;
  connections = 0;
  sessions = 0;
  serverStarts = 0;
  /** Changes of members that the ensemble has acknowledged. */
  memberChanges = 0;
  readonly epochs: Set<number> = new Set();
  faults: ReadonlyMap<FaultKind, number> = new Map();
  /** Milliseconds between two acknowledged writes of any clients. */
  longestGapMs = 0;
  /** Of these, while a majority could have worked; and whose time that was. */
  longestAbleMs = 0;
  longestAble = '';
  /** Milliseconds from the end of the faults of a round until everything works and is equal. */
  longestRecoveryMs = 0;
  longestCheckMs = 0;
  txns = 0;
  rounds = 0;
  /** Of faults. */
  elapsedMs = 0;

  addRound(history: History): void {
    this.rounds++;
    let lastMs: number | null = null;
    for (const entry of history.entries) {
      if (entry.kind === 'told') this.watchEvents++;
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

/** Label and figure of each line of the table at the end. */
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

/** What a run must have done in each whole minute of faults to prove anything; a loaded machine does more. */
const FLOORS_A_MINUTE = { faults: 3, memberChanges: 1, epochs: 0.5, writes: 60 } as const;
/** Minutes of faults after which each kind must have been there. */
const ALL_KINDS_MINUTES = 30;
/** Milliseconds without a write although a majority could work: several elections, and the start of a server, on a busy machine. */
const ABLE_MS_MAX = 60_000;

/** What a run has done too little of, in words. @param kinds those that were asked for */
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
