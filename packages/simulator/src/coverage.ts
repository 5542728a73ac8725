import { FAULT_KINDS, type FaultKind } from './fault.ts';
import { MEMBERS_CHANGED, SIGHTINGS } from './sightings.ts';
import type { SimulateResult } from './simulate.ts';
import type { Trait } from './traits.ts';

/** Everything that checkers are fed with, by name: events of the live checker, entries of the history, outcomes of operations. */
export const INPUTS = [
  'started',
  'stopped',
  'recovered',
  'logged',
  'log durable',
  'epoch durable',
  'truncated',
  'snapshot installed',
  'applied',
  'serving',
  'answered',
  'trace role-changed',
  'trace epoch-established',
  'trace committed',
  'trace session-created',
  'trace session-expired',
  'wire leader-packet',
  'wire learner-packet',
  'wire notification',
  'history connected',
  'history sent',
  'history reply',
  'history rearmed',
  'history event',
  'history notified',
  'history refused',
  'history stir',
  'create succeeded',
  'create refused',
  'set succeeded',
  'set refused',
  'delete succeeded',
  'delete refused',
  'multi succeeded',
  'multi refused',
  'get succeeded',
  'exists succeeded',
  'children succeeded',
  'sync succeeded',
  'watch succeeded',
  'close succeeded',
  'in doubt',
] as const;

/** Operations that must succeed in a virtual minute, on average over all seeds, while things go wrong. */
export const SUCCEEDED_PER_MINUTE_MIN = 300;
/** The share of planned faults that must have had an effect. */
export const EXECUTED_SHARE_MIN = 0.7;

/** Adds up whether runs were worth checking: a world in which nothing happens violates no invariant. */
export class Coverage {
  readonly #fed: Map<string, number> = new Map();
  readonly #executed: Map<FaultKind, number> = new Map();
  #planned = 0;
  #succeeded = 0;
  #minutes = 0;

  add({ plan, stats }: Pick<SimulateResult, 'plan' | 'stats'>): void {
    for (const [name, count] of stats.fed) this.#fed.set(name, (this.#fed.get(name) ?? 0) + count);
    for (const [kind, count] of stats.faultsByKind) this.#executed.set(kind, (this.#executed.get(kind) ?? 0) + count);
    this.#planned += plan.length;
    this.#succeeded += stats.succeededUnderFaults;
    this.#minutes += stats.minutes;
  }

  /** How often a checker was fed with an input, or a trait made a difference. */
  countOf(name: string): number {
    return this.#fed.get(name) ?? 0;
  }

  get executed(): ReadonlyMap<FaultKind, number> {
    return this.#executed;
  }

  get succeededPerMinute(): number {
    return this.#minutes === 0 ? 0 : this.#succeeded / this.#minutes;
  }

  /** The share of planned faults that had an effect. */
  get executedShare(): number {
    let executed = 0;
    for (const count of this.#executed.values()) executed += count;
    return this.#planned === 0 ? 0 : executed / this.#planned;
  }

  /**
   * What is below its floor, as text; empty when the runs were worth checking.
   *
   * @param traits of which each must have made a difference in some world
   */
  lacks(kinds: readonly FaultKind[] = FAULT_KINDS, traits: readonly Trait[] = []): readonly string[] {
    const lacks = INPUTS.filter((name) => !this.#fed.has(name)).map((name) => `no checker was fed: ${name}`);
    for (const kind of kinds) if (!this.#executed.has(kind)) lacks.push(`no fault was carried out: ${kind}`);
    if (kinds.includes('members') && !this.#fed.has(MEMBERS_CHANGED))
      lacks.push(`members made no difference: no ${MEMBERS_CHANGED}`);
    for (const trait of traits) {
      for (const name of SIGHTINGS[trait]) {
        if (!this.#fed.has(name)) lacks.push(`${trait} made no difference: no ${name}`);
      }
    }
    if (this.executedShare < EXECUTED_SHARE_MIN) {
      lacks.push(
        `${percent(this.executedShare)} of the planned faults were carried out, ${percent(EXECUTED_SHARE_MIN)} are due`,
      );
    }
    if (this.succeededPerMinute < SUCCEEDED_PER_MINUTE_MIN) {
      const found = `${Math.round(this.succeededPerMinute)} operations a virtual minute succeeded under faults`;
      lacks.push(`${found}, ${SUCCEEDED_PER_MINUTE_MIN} are due`);
    }
    return lacks;
  }
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
