import type { Surroundings } from '@meerkat/client';
import { checkLimit, checkMs } from '../kernel/bounds.ts';
import type { ServiceInstance } from './service-instance.ts';

/**
 * Which of several instances the next call goes to.
 *
 * @param instances at least one, ordered by id
 */
export type ServiceStrategy<T = unknown> = (
  instances: readonly ServiceInstance<T>[],
  random: Surroundings['random'],
) => ServiceInstance<T>;

/** One behind the other, in the order of their ids: none is left out or called twice when others come and go. */
export function roundRobin<T>(): ServiceStrategy<T> {
  let last = '';
  return (instances) => {
    const instance = (instances.find(({ id }) => id > last) ?? instances[0]) as ServiceInstance<T>;
    last = instance.id;
    return instance;
  };
}

/** Any, each as often as the others. */
export function anyOf<T>(): ServiceStrategy<T> {
  return (instances, random) =>
    instances[Math.floor((random.uint32() / 2 ** 32) * instances.length)] as ServiceInstance<T>;
}

/** Always the same, as long as it is there; which one, another strategy says. */
export function sticky<T>(first: ServiceStrategy<T> = anyOf()): ServiceStrategy<T> {
  let chosen: string | null = null;
  return (instances, random) => {
    const same = instances.find(({ id }) => id === chosen);
    const instance = same ?? first(instances, random);
    chosen = instance.id;
    return instance;
  };
}

/** When an instance that fails is left alone, and how long. */
export interface DownPolicy {
  /** So many errors within `timeoutMs`, and it is not chosen any more. At least 1, default 2. */
  readonly errorsMax?: number | undefined;
  /** Milliseconds after its first error an instance has a clean slate. Default 30,000. */
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
