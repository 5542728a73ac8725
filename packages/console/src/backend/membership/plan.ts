import { type ConfiguredMember, type EnsembleConfig, parseConfig } from './ensemble-config.ts';

/** A member to be added, removed or changed: one step of a plan is one reconfig. */
export interface PlannedChange {
  readonly id: string;
  /** Its new text after `server.N=`; null: it is removed. */
  readonly line: string | null;
}

/** The answer of a server at its client port. */
export interface MemberState {
  /** `leader`, `follower`, `observer`, `looking`; null when it does not answer, or its address is not known. */
  readonly role: string | null;
  readonly problem: string | null;
}

export interface Step {
  readonly change: PlannedChange;
  /** As text: `add server 4 as a participant`. */
  readonly what: string;
  /** Ids of the participants afterwards. */
  readonly voters: readonly string[];
  /** How many of them must be up. */
  readonly quorum: number;
  /** How many of them answer now. */
  readonly up: number;
  /** What to do before the step; null when nothing. */
  readonly first: string | null;
  /** What to know; null when nothing. */
  readonly note: string | null;
}

/**
 * One server per step: additions before removals, alternating, so that the ensemble is never smaller than necessary,
 * and never larger by more than one.
 */
export function orderChanges(current: EnsembleConfig, changes: readonly PlannedChange[]): readonly PlannedChange[] {
  const isMember = (id: string): boolean => current.members.some((member) => member.id === id);
  const changed = changes.filter(({ id, line }) => line !== null && isMember(id));
  const coming = changes.filter(({ id, line }) => line !== null && !isMember(id));
  const going = changes.filter(({ line }) => line === null);
  const ordered: PlannedChange[] = [...changed];
  for (let i = 0; i < Math.max(coming.length, going.length); i++) {
    ordered.push(...[coming[i], going[i]].filter((change) => change !== undefined));
  }
  return ordered;
}

/** The steps, with the current answers of the servers involved. */
export async function makePlan(
  config: EnsembleConfig,
  changes: readonly PlannedChange[],
  ask: (members: readonly ConfiguredMember[]) => Promise<ReadonlyMap<string, MemberState>>,
): Promise<readonly Step[]> {
  const coming = changes.flatMap((change) => memberOf(change) ?? []);
  const known = [...config.members.filter(({ id }) => !coming.some((other) => other.id === id)), ...coming];
  const states = new Map(await ask(known));
  // A server that moves answers at its current address.
  const moved = config.members.filter(({ id }) => states.get(id)?.role == null);
  for (const [id, state] of await ask(moved)) if (state.role !== null) states.set(id, state);
  return planSteps(config, changes, states);
}

export function planSteps(
  current: EnsembleConfig,
  changes: readonly PlannedChange[],
  states: ReadonlyMap<string, MemberState>,
): readonly Step[] {
  const steps: Step[] = [];
  let members = current.members;
  for (const change of orderChanges(current, changes)) {
    const before = members.find(({ id }) => id === change.id) ?? null;
    members = apply(members, change);
    const voters = members.filter(isVoter).map(({ id }) => id);
    const up = voters.filter((id) => (states.get(id)?.role ?? null) !== null).length;
    const quorum = Math.floor(voters.length / 2) + 1;
    steps.push({
      change,
      what: describe(change, before),
      voters,
      quorum,
      up,
      first: findFirst(change, states.get(change.id), { voters, quorum, up }),
      note: findNote(change, states.get(change.id), voters),
    });
  }
  return steps;
}

/**
 * A line of groups or weights; null: there is none. With them a majority is not a quorum, and servers do not change
 * single members.
 */
export function weightLine({ text }: EnsembleConfig): string | null {
  return /^(?:group|weight)\..*$/m.exec(text)?.[0] ?? null;
}

/** Whether in each step the participants that answer now are a quorum. */
export function survives({ up, quorum }: Step): boolean {
  return up >= quorum;
}

export function isVoter({ text }: ConfiguredMember): boolean {
  return !/:observer(;|\||$)/i.test(text);
}

/** A server of the configuration to be contacted, with its client address. */
export function memberOf({ id, line }: PlannedChange): ConfiguredMember | null {
  return line === null ? null : (parseConfig(`server.${id}=${line}`).members[0] ?? null);
}

function apply(members: readonly ConfiguredMember[], change: PlannedChange): readonly ConfiguredMember[] {
  const others = members.filter(({ id }) => id !== change.id);
  const member = memberOf(change);
  return member === null ? others : [...others, member];
}

function describe(change: PlannedChange, before: ConfiguredMember | null): string {
  const after = memberOf(change);
  if (after === null)
    return before === null ? `remove server ${change.id}, which is no member` : `remove server ${change.id}`;
  const role = isVoter(after) ? 'a participant' : 'an observer';
  if (before === null) return `add server ${change.id} as ${role}`;
  if (isVoter(before) !== isVoter(after)) return `make server ${change.id} ${role}`;
  return before.text === after.text
    ? `leave server ${change.id} as it is`
    : `move server ${change.id} to ${after.text}`;
}

function findFirst(
  { id, line }: PlannedChange,
  state: MemberState | undefined,
  { voters, quorum, up }: Pick<Step, 'voters' | 'quorum' | 'up'>,
): string | null {
  if (voters.length === 0) return 'keep a participant: without one there is no quorum';
  const isUp = state !== undefined && state.role !== null && state.role !== 'looking';
  if (line !== null && !isUp) {
    return `start server ${id} with the list of the members and itself, and wait until it follows: ${state?.problem ?? 'it does not answer'}`;
  }
  return up < quorum ? `start more of ${voters.join(', ')}: ${up} answer, and ${quorum} are needed` : null;
}

function findNote(
  { id, line }: PlannedChange,
  state: MemberState | undefined,
  voters: readonly string[],
): string | null {
  const notes: string[] = [];
  if (state?.role === 'leader') notes.push('it leads: another server takes over, and connections break for a moment');
  if (voters.length % 2 === 0)
    notes.push(`${voters.length} participants: one less may fail than of ${voters.length + 1}`);
  if (line === null) notes.push(`stop server ${id} afterwards`);
  return notes.length === 0 ? null : notes.join('; ');
}
