import type { ConnectThrottleOptions } from '../base/limit-options.ts';
import type { Random } from '../base/ports.ts';

/**
 * Limits the rate of connects: a token bucket, combined with a drop probability that rises while the bucket is empty
 * (BlueThrottle; for the configuration keys see docs/configuration.md).
 */
export class ConnectThrottle {
  readonly #options: ConnectThrottleOptions;
  readonly #random: Random;
  #tokens: number;
  #filledMs: number;
  #frozenSinceMs: number;
  #dropChance = 0;

  constructor(options: ConnectThrottleOptions, random: Random, nowMs: number) {
    this.#options = options;
    this.#random = random;
    this.#tokens = options.tokens;
    this.#filledMs = nowMs;
    this.#frozenSinceMs = nowMs;
  }

  /** From 0 to 1. */
  get dropChance(): number {
    return this.#dropChance;
  }

  /** Tokens missing from the bucket. */
  get deficit(): number {
    return this.#options.tokens - this.#tokens;
  }

  /** @returns false when the client must retry later */
  take(session: 'new' | 'renewed' | 'local', nowMs: number): boolean {
    const { tokens, freezeTimeMs } = this.#options;
    if (tokens === 0) return true;
    this.#fill(nowMs);
    if (freezeTimeMs >= 0 && this.#drops(nowMs)) return false;
    const price = this.#priceOf(session);
    if (this.#tokens < price) return false;
    this.#tokens -= price;
    return true;
  }

  #priceOf(session: 'new' | 'renewed' | 'local'): number {
    const { hasWeights, newSessionTokens, renewedSessionTokens, localSessionTokens } = this.#options;
    if (!hasWeights) return 1;
    if (session === 'renewed') return renewedSessionTokens;
    return session === 'new' ? newSessionTokens : localSessionTokens;
  }

  #fill(nowMs: number): void {
    const { tokens, fillTimeMs, fillCount } = this.#options;
    const elapsedMs = nowMs - this.#filledMs;
    if (elapsedMs <= fillTimeMs) return;
    this.#tokens = Math.min(tokens, this.#tokens + Math.floor((elapsedMs * fillCount) / fillTimeMs));
    this.#filledMs = nowMs;
  }

  #drops(nowMs: number): boolean {
    const { tokens, freezeTimeMs, dropIncrease, dropDecrease, decreaseRatio } = this.#options;
    if (nowMs - this.#frozenSinceMs > freezeTimeMs) {
      const isEmpty = this.#tokens === 0;
      const isIdle = tokens - this.#tokens <= tokens * decreaseRatio;
      if (isEmpty) this.#dropChance = Math.min(1, this.#dropChance + dropIncrease);
      else if (isIdle) this.#dropChance = Math.max(0, this.#dropChance - dropDecrease);
      if (isEmpty || isIdle) this.#frozenSinceMs = nowMs;
    }
    return this.#dropChance > 0 && this.#random.uint32() < this.#dropChance * 2 ** 32;
  }
}
