import type { Surroundings } from '@meerkat/client';
import { checkLimit, checkMs } from '../kernel/bounds.ts';
import type { ServiceInstance } from './service-instance.ts';

/**
 * Chooses the instance for the next call.
 *
 * @param instances at least one, ordered by id
 */
export type ServiceStrategy<T = unknown> = (
  instances: readonly ServiceInstance<T>[],
  random: Surroundings['random'],
) => ServiceInstance<T>;

/** In the order of their ids: none is skipped or chosen twice when others are added or removed. */
export function roundRobin<T>(): ServiceStrategy<T> {
  let last = '';
  return (instances) => {
    const instance = (instances.find(({ id }) => id > last) ?? instances[0]) as ServiceInstance<T>;
    last = instance.id;
    return instance;
  };
}

/** At random, with equal probability. */
export function anyOf<T>(): ServiceStrategy<T> {
  return (instances, random) =>
    instances[Math.floor((random.uint32() / 2 ** 32) * instances.length)] as ServiceInstance<T>;
}

/** The same instance as long as it exists; another strategy makes the first choice. */
export function sticky<T>(first: ServiceStrategy<T> = anyOf()): ServiceStrategy<T> {
  let chosen: string | null = null;
  return (instances, random) => {
    const same = instances.find(({ id }) => id === chosen);
    const instance = same ?? first(instances, random);
    chosen = instance.id;
    return instance;
  };
}

/** When a failing instance is taken out of the choice, and for how long. */
export interface DownPolicy {
  /** After this many errors within `timeoutMs` it is no longer chosen. At least 1, default 2. */
  readonly errorsMax?: number | undefined;
  /** Milliseconds after the first error at which the errors of an instance are forgotten. Default 30,000. */
  readonly timeoutMs?: number | undefined;
}

/** Counts the errors that callers report. */
export class DownInstances {
  readonly #clock: Surroundings['clock'];
  readonly #errorsMax: number;
  readonly #timeoutMs: number;
  /** By id. */
  readonly #errors: Map<string, { readonly sinceMs: number; count: number }> = new Map();

  constructor(clock: Surroundings['clock'], { errorsMax = 2, timeoutMs = 30_000 }: DownPolicy = {}) {
    checkLimit('errorsMax', errorsMax);
    checkMs('timeoutMs', timeoutMs);
    this.#clock = clock;
    this.#errorsMax = errorsMax;
    this.#timeoutMs = timeoutMs;
  }

  note(id: string): void {
    this.#forget();
    const known = this.#errors.get(id);
    if (known === undefined) this.#errors.set(id, { sinceMs: this.#clock.monotonicMs(), count: 1 });
    else known.count++;
  }

  isDown(id: string): boolean {
    this.#forget();
    return (this.#errors.get(id)?.count ?? 0) >= this.#errorsMax;
  }

  #forget(): void {
    const endMs = this.#clock.monotonicMs() - this.#timeoutMs;
    for (const [id, { sinceMs }] of this.#errors) if (sinceMs <= endMs) this.#errors.delete(id);
  }
}
