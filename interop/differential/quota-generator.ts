import { Op } from '../harness/raw-client.ts';
import { OPEN_ACL } from '../harness/record-builder.ts';
import type { MultiGenerator } from './multi-generator.ts';
import type { Random } from './random.ts';
import type { Request } from './requests.ts';
import * as requests from './requests.ts';
import type { StepFacts } from './step.ts';
import { QUOTA_NODES, QUOTA_PATHS, VERSIONS } from './vocabulary.ts';

/** Writes below a quota, and to the quota itself. */
export class QuotaGenerator {
  readonly #random: Random;
  readonly #multis: MultiGenerator;
  readonly #read: (path: string) => Request;

  constructor(random: Random, multis: MultiGenerator, read: (path: string) => Request) {
    this.#random = random;
    this.#multis = multis;
    this.#read = read;
  }

  next(): { request: Request; facts?: StepFacts } {
    const random = this.#random;
    const path = random.pick(QUOTA_PATHS);
    const kind = random.weighted({ create: 30, delete: 20, setData: 20, stats: 10, quotaNode: 5, multi: 6 });
    const version = random.oneIn(5) ? random.pick(VERSIONS) : -1;
    switch (kind) {
      case 'create': {
        const type = random.pick([Op.create, Op.create2]);
        return { request: requests.create(type, { path, data: this.#data(), acl: OPEN_ACL, flags: 0 }) };
      }
      case 'delete':
        return { request: requests.pathAndVersion(Op.delete, path, version) };
      case 'setData':
        return { request: requests.setData(path, this.#data(), version) };
      case 'stats':
        return { request: this.#read(random.pick(QUOTA_NODES)) };
      case 'quotaNode':
        return { request: this.#quota(random.pick(QUOTA_NODES), version) };
      case 'multi':
        return this.#multis.next(QUOTA_PATHS);
    }
  }

  #quota(path: string, version: number): Request {
    const random = this.#random;
    if (random.oneIn(3)) return requests.pathAndVersion(Op.delete, path, version);
    const data = Buffer.from(random.pick(['count=-1,bytes=-1=;byteHardLimit=40;countHardLimit=4', 'count=3,bytes=20']));
    return requests.create(Op.create, { path, data, acl: OPEN_ACL, flags: 0 });
  }

  #data(): Buffer | null {
    return this.#random.oneIn(12) ? null : this.#random.bytes(this.#random.below(30));
  }
}
