import type { CallOptions, Client } from '@meerkat/client';
import { type AtomicUpdate, AtomicValue, type CounterOptions } from './atomic-value.ts';
import { decimalFloat, decimalInteger, int64 } from './numbers.ts';

/**
 * A counter of 64 bits, signed; Curator's DistributedAtomicLong. Each addition counts once, also when its reply is lost.
 *
 * @example
 * const hits = new AtomicLong(client, '/hits');
 * const { after } = await hits.increment();
 */
export class AtomicLong extends AtomicValue<bigint> {
  constructor(client: Client, path: string, options?: CounterOptions) {
    super(client, path, { ...options, codec: int64, initial: 0n });
  }

  /** @throws RangeError when the result does not fit into 64 bits, or the amount is not an integer */
  async add(amount: bigint | number, options?: CallOptions): Promise<AtomicUpdate<bigint>> {
    const wanted = BigInt(amount);
    return this.update((current) => current + wanted, options);
  }

  increment(options?: CallOptions): Promise<AtomicUpdate<bigint>> {
    return this.add(1n, options);
  }

  decrement(options?: CallOptions): Promise<AtomicUpdate<bigint>> {
    return this.add(-1n, options);
  }
}

/**
 * A counter in decimal digits, of any size; kazoo's Counter of an int.
 *
 * @example
 * const visits = new Counter(client, '/visits');
 * await visits.add(5);
 */
export class Counter extends AtomicValue<bigint> {
  constructor(client: Client, path: string, options?: CounterOptions & { readonly initial?: bigint | undefined }) {
    super(client, path, { ...options, codec: decimalInteger, initial: options?.initial ?? 0n });
  }

  /** @throws RangeError for an amount that is not an integer */
  async add(amount: bigint | number, options?: CallOptions): Promise<AtomicUpdate<bigint>> {
    const wanted = BigInt(amount);
    return this.update((current) => current + wanted, options);
  }
}

/** A sum of numbers with a fraction; kazoo's Counter of a float. */
export class FloatCounter extends AtomicValue<number> {
  constructor(client: Client, path: string, options?: CounterOptions & { readonly initial?: number | undefined }) {
    super(client, path, { ...options, codec: decimalFloat, initial: options?.initial ?? 0 });
  }

  add(amount: number, options?: CallOptions): Promise<AtomicUpdate<number>> {
    return this.update((current) => current + amount, options);
  }
}
