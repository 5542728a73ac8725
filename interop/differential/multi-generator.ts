import { Op } from '../harness/raw-client.ts';
import { OPEN_ACL } from '../harness/record-builder.ts';
import type { Random } from './random.ts';
import type { NewZnode, Request } from './requests.ts';
import * as requests from './requests.ts';
import type { StepFacts } from './step.ts';
import { ODD_ACLS, ODD_PATHS, ODD_PATHS_IN_MULTI, TTLS, VERSIONS } from './vocabulary.ts';

type SubOp = NonNullable<StepFacts['subOps']>[number];

/** Ops that make a multi fail as a whole. */
const FOREIGN_TYPES: readonly number[] = [Op.exists, Op.getData, Op.getChildren, Op.setACL, Op.multi, Op.sync, 0, 99];

/** Multis that succeed, that fail at some op, and that cannot be decoded. */
export class MultiGenerator {
  readonly #random: Random;
  readonly #path: (paths: readonly string[]) => string;

  constructor(random: Random, path: (paths: readonly string[]) => string) {
    this.#random = random;
    this.#path = path;
  }

  /** `isPlain` excludes everything that releases treat differently. */
  next(paths: readonly string[], options: { isPlain?: boolean } = {}): { request: Request; facts: StepFacts } {
    const random = this.#random;
    const subs: Request[] = [];
    const subOps: SubOp[] = [];
    for (let left = random.below(6); left > 0; left--) {
      const { request, flags } = this.#sub(paths, options.isPlain ?? false);
      subs.push(request);
      subOps.push({ type: request.type, flags });
    }
    return { request: requests.multi(Op.multi, subs), facts: { subOps } };
  }

  nextRead(paths: readonly string[]): Request {
    const random = this.#random;
    const subs = Array.from({ length: random.below(5) }, () => {
      const path = random.oneIn(15) ? random.pick(ODD_PATHS) : this.#path(paths);
      const type = random.oneIn(60) ? random.pick([Op.exists, Op.create]) : random.pick([Op.getData, Op.getChildren]);
      // The flag is decoded and ignored: no watch is set.
      return requests.watchedRead(type, path, random.oneIn(2));
    });
    return requests.multi(Op.multiRead, subs);
  }

  #sub(paths: readonly string[], isPlain: boolean): { request: Request; flags: number } {
    const random = this.#random;
    const path = !isPlain && random.oneIn(40) ? random.pick(ODD_PATHS_IN_MULTI) : this.#path(paths);
    const version = random.oneIn(3) ? random.pick(VERSIONS) : -1;
    const data = random.oneIn(12) ? null : random.bytes(random.below(12));
    const kind = random.weighted({ create: 20, delete: 12, setData: 12, check: 10, foreign: isPlain ? 0 : 1 });
    switch (kind) {
      case 'create':
        return this.#create(path, data, isPlain);
      case 'delete':
        return { request: requests.pathAndVersion(Op.delete, path, version), flags: -1 };
      case 'setData':
        return { request: requests.setData(path, data, version), flags: -1 };
      case 'check':
        return { request: requests.pathAndVersion(Op.check, path, version), flags: -1 };
      case 'foreign':
        return { request: requests.watchedRead(random.pick(FOREIGN_TYPES), path, false), flags: -1 };
    }
  }

  /**
   * A create of one of the four types. A createContainer always has flags 4: with others, releases before 3.8.2 create
   * a znode of another kind (docs/protocol/client.md, "Multi"), and the trees would diverge.
   */
  #create(path: string | null, data: Buffer | null, isPlain: boolean): { request: Request; flags: number } {
    const random = this.#random;
    const type = random.pick([Op.create, Op.create, Op.create2, Op.createContainer, Op.createTTL]);
    const odd = !isPlain && random.oneIn(15);
    const usual = type === Op.createTTL ? random.pick([5, 5, 6]) : random.pick([0, 0, 0, 1, 1, 1, 2, 3]);
    const flags = type === Op.createContainer ? 4 : odd ? random.pick([-1, 0, 1, 2, 3, 4, 5, 6, 7, 100]) : usual;
    const acl = random.oneIn(25) ? random.pick(ODD_ACLS) : OPEN_ACL;
    const ttl = random.oneIn(4) ? random.pick(TTLS) : 3_600_000n;
    const znode: NewZnode = { path, data, acl, flags, ttl };
    return { request: requests.create(type, znode), flags };
  }
}

/** An empty multi is valid; damaging it is useless. */
export function isEmptyMulti(request: Request): boolean {
  return request.type === Op.multi && request.body.length <= 9;
}
