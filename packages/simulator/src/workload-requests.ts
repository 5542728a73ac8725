import type { MultiPart, MultiWrite, Operation, OperationRequest, ReadRequest, WriteRequest } from './history.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { WorkloadAcls } from './workload-acls.ts';
import type { WorkloadOptions } from './workload-options.ts';
import { drawQuotaWrite, quotaPathOf } from './workload-quotas.ts';

/**
 * What one client of a workload asks for, drawn from its own random numbers.
 *
 * The znodes are `/w`, the keys `/w/0`, `/w/1`, … with children of their own, and sequential ones below `/w/q`. No
 * value is written twice, so that a value that was read tells which write it saw.
 */
export class WorkloadRequests {
  readonly #host: string;
  readonly #options: WorkloadOptions;
  /** null: no permissions are set. */
  readonly #acls: WorkloadAcls | null;
  readonly #random: SeededRandom;
  /** The only key that is asked for; null: any. */
  #subject: string | null = null;
  #values = 0;
  readonly #versions: Map<string, number> = new Map();
  /** Sequential znodes that it has created and not deleted yet. */
  #sequential: string[] = [];

  constructor(host: string, acls: WorkloadAcls | null, random: SeededRandom, options: WorkloadOptions) {
    this.#host = host;
    this.#acls = acls;
    this.#random = random;
    this.#options = options;
  }

  /**
   * Anything.
   *
   * @param isFirst one of the first requests of the workload, which create the parents of the others
   * @param watched paths that are read more often
   */
  draw(isFirst: boolean, watched: readonly string[]): OperationRequest {
    const random = this.#random;
    const dice = random.fraction();
    if (isFirst) {
      const path = this.#options.hasQuotas && random.chance(0.5) ? quotaPathOf(ROOT) : ROOT;
      return { op: 'create', path, data: '', mode: 'persistent', isSequential: false };
    }
    if (dice < 0.5) return this.#read(watched);
    if (this.#options.hasQuotas && random.chance(0.12)) return drawQuotaWrite(random, this.key());
    if (dice < 0.9) return this.#write();
    if (dice < 0.97) {
      const parts = Array.from({ length: random.between(1, PARTS_MAX) }, () => this.#part());
      if (!random.chance(0.1)) return { op: 'multi', parts };
      // Long ones, of which more than a few succeed.
      const checks = Array.from({ length: random.between(10, 100) }, () => CHECK_OF_ROOT);
      return { op: 'multi', parts: [...checks, this.#multiWrite(this.#options.valueBytesMax / PARTS_MAX)] };
    }
    return { op: 'sync', path: ROOT };
  }

  #read(watched: readonly string[]): ReadRequest {
    const random = this.#random;
    const op = random.pick(['get', 'get', 'exists', 'children'] as const);
    // Watches of several kinds on one path interfere.
    const known = watched.length > 0 && random.chance(0.3) ? random.pick(watched) : null;
    const path = known ?? (random.chance(0.2) ? ROOT : this.path());
    return { op, path, hasWatch: random.chance(0.3), isLinearizable: random.chance(0.2) };
  }

  #part(): MultiPart {
    if (!this.#random.chance(0.25)) return this.#multiWrite(this.#options.valueBytesMax / PARTS_MAX);
    const path = this.path();
    return { op: 'check', path, version: this.#version(path) };
  }

  /** Deletes a znode and creates it, with other parts before, between and behind: each may fail. */
  rewrite(): OperationRequest {
    const random = this.#random;
    const path = this.path();
    const set = (): MultiPart => ({ op: 'set', path, data: this.value(), version: this.#version(path) });
    const other = (): readonly MultiPart[] => (random.chance(0.3) ? [random.chance(0.5) ? set() : this.#part()] : []);
    const remove: MultiPart = { op: 'delete', path, version: -1 };
    const data = this.value();
    const acl = this.#acls === null ? {} : { acl: this.#acls.draw(random) };
    const create: MultiPart = { op: 'create', path, data, mode: 'persistent', isSequential: false, ...acl };
    const both = random.chance(0.7) ? [remove, ...other(), create] : [create, ...other(), remove];
    return { op: 'multi', parts: [...other(), ...both, ...other()] };
  }

  /** Writes about one key. */
  writesTo(key: string, count: number): readonly WriteRequest[] {
    this.#subject = key;
    const writes = Array.from({ length: count }, () => this.#write());
    this.#subject = null;
    return writes;
  }

  #write(): WriteRequest {
    if (this.#acls === null || !this.#random.chance(0.12)) return this.#multiWrite();
    const version = this.#random.chance(0.7) ? -1 : this.#random.between(0, 3);
    return { op: 'setAcl', path: this.path(), acl: this.#acls.draw(this.#random), version };
  }

  #multiWrite(valueBytesMax: number = this.#options.valueBytesMax): MultiWrite {
    const random = this.#random;
    const path = this.path();
    const dice = random.fraction();
    if (dice < 0.35) {
      const isSequential = random.chance(0.35);
      const life = this.#life();
      const acl = this.#acls === null || isSequential ? {} : { acl: this.#acls.draw(random) };
      const data = this.value(valueBytesMax);
      if (life.mode === 'container') return { op: 'create', path, data, ...life, isSequential: false, ...acl };
      return { op: 'create', path: isSequential ? `${ROOT}/q-` : path, data, ...life, isSequential, ...acl };
    }
    if (dice < 0.7) return { op: 'set', path, data: this.value(valueBytesMax), version: this.#version(path) };
    if (random.chance(0.5)) {
      const known = this.#sequential.shift();
      if (known !== undefined) return { op: 'delete', path: known, version: -1 };
    }
    return { op: 'delete', path, version: this.#version(path) };
  }

  key(): string {
    return `${ROOT}/${this.#random.between(0, this.#options.keys - 1)}`;
  }

  path(): string {
    const random = this.#random;
    const key = this.#subject ?? this.key();
    return random.chance(0.25) ? `${key}/${random.between(0, 1)}` : key;
  }

  /** Any, the one that was seen last, or one that is wrong. */
  #version(path: string): number {
    if (this.#random.chance(0.4)) return -1;
    return (this.#versions.get(path) ?? 0) + (this.#random.chance(0.1) ? 1 : 0);
  }

  /** How long a znode lives, besides until it is deleted. */
  #life(): Pick<Extract<MultiWrite, { readonly op: 'create' }>, 'mode' | 'ttlMs'> {
    const random = this.#random;
    if (this.#options.hasCollectables && random.chance(0.4)) {
      return random.chance(0.5) ? { mode: 'container' } : { mode: 'persistent', ttlMs: random.between(100, 3000) };
    }
    return { mode: random.chance(0.4) ? 'ephemeral' : 'persistent' };
  }

  /** @param bytesMax one in four is between some bytes and so long; 0: all are short */
  value(bytesMax = 0): string {
    const value = `${this.#host}.${++this.#values}`;
    if (bytesMax === 0 || !this.#random.chance(0.25)) return value;
    const length = Math.floor(100 * (bytesMax / 100) ** this.#random.fraction());
    return value.padEnd(length, '.');
  }

  /** What an answer says about versions, and znodes to delete. */
  onAnswered({ request, result }: Operation): void {
    if (result === null) return;
    if (result.op === 'create' && request.op === 'create' && request.isSequential) this.#sequential.push(result.path);
    if ('path' in request && 'stat' in result && result.stat !== null) {
      this.#versions.set(request.path, result.stat.version);
    }
  }
}

/** The parent of all keys. */
export const ROOT = '/w';
const CHECK_OF_ROOT = { op: 'check', path: ROOT, version: -1 } as const;
const PARTS_MAX = 4;
