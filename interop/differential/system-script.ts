import { Op } from '../harness/raw-client.ts';
import { type AclEntry, OPEN_ACL } from '../harness/record-builder.ts';
import type { Script } from './comparison.ts';
import { connectStep, type StepResult } from './generator.ts';
import { Random } from './random.ts';
import type { Request } from './requests.ts';
import * as requests from './requests.ts';
import { ORACLE_SLOT } from './slots.ts';
import type { RequestStep, Step } from './step.ts';

const QUOTA = '/zookeeper/quota';
const LIMITS = 'zookeeper_limits';
const STATS = 'zookeeper_stats';

/** Znodes with quotas, and some below them. */
const TREE: readonly string[] = ['/t', '/t/a', '/t/a/b', '/t/a/b/c', '/t/ab', '/u', '/u/x'];
const QUOTA_PARENTS: readonly string[] = ['', '/t', '/t/a', '/t/a/b', '/t/ab', '/u'].map((path) => `${QUOTA}${path}`);
/** Without a quota of the root, which terminates Apache's server. */
const QUOTA_ZNODES: readonly string[] = QUOTA_PARENTS.flatMap((path) =>
  path === QUOTA ? [path, `${path}/${STATS}`] : [path, `${path}/${LIMITS}`, `${path}/${STATS}`],
);
/** System znodes, and similar paths. */
const SYSTEM_ZNODES: readonly string[] = [
  ...['/', '/zookeeper', '/zookeeper/config', '/zookeeper/config/x', '/zookeeper/x', '/zookeeper/x/y', QUOTA],
  ...[`/${LIMITS}`, `/t/${LIMITS}`, `/t/${STATS}`, `${QUOTA}x`, `${QUOTA}/t/a/${LIMITS}/x`, `${QUOTA}/t/x${LIMITS}`],
  ...['/zookeeper/quota/t/', '/zookeeper//quota', '/zookeeper/quota/../config', 'zookeeper', 'zookeeper/quota'],
];

/** Texts of limits, valid and invalid. */
const LIMIT_TEXTS: readonly string[] = [
  ...['count=3,bytes=-1', 'count=-1,bytes=20', 'count=2,bytes=10=;byteHardLimit=15;countHardLimit=3'],
  ...['count=-1,bytes=-1=;byteHardLimit=12', 'count=-1,bytes=-1=;countHardLimit=2', 'count=0,bytes=0'],
  ...['count=-1,bytes=-1=;byteHardLimit=0;countHardLimit=0', 'count=-5,bytes=-7', 'bytes=9,count=4'],
  ...['countHardLimit=2;byteHardLimit=30', 'count=1,,;;bytes=5', 'count=3', 'bytes=20', 'unknown=7,count=2,bytes=9'],
];

/** Usage in the servers' format: Apache's rewrites other formats on the next write, ours only if the usage changes. */
const USAGE_TEXTS: readonly string[] = [
  ...[
    'count=3,bytes=-1',
    'count=0,bytes=0',
    'count=-7,bytes=1000',
    'count=2,bytes=10=;byteHardLimit=15;countHardLimit=3',
  ],
];

/** All reads of a znode: data, Stat, children and ACL. */
const READS: readonly number[] = [Op.exists, Op.getData, Op.getChildren2, Op.getACL, Op.getAllChildrenNumber];

/**
 * Operations of clients on system znodes: reading, writing and deleting them, their children, and quotas.
 *
 * After every write all quotas are read, because the server maintains their usage itself.
 */
export class SystemScript implements Script {
  readonly #random: Random;
  readonly #seed: number;
  readonly #steps: number;
  readonly #isConnected: boolean[] = Array.from({ length: ORACLE_SLOT + 1 }, () => false);
  readonly #queue: Step[] = [];

  constructor(seed: number, steps: number) {
    this.#random = new Random(seed);
    this.#seed = seed;
    this.#steps = steps;
    const quotas = ['/t', '/t/ab', '/u'].flatMap((path) => [
      `${QUOTA}${path}`,
      `${QUOTA}${path}/${LIMITS}`,
      `${QUOTA}${path}/${STATS}`,
    ]);
    for (const path of [...TREE, ...quotas]) {
      const data = path.endsWith(LIMITS) ? this.#quotaText() : Buffer.from('data');
      this.#queue.push(this.#request(0, requests.create(Op.create, { path, data, acl: OPEN_ACL, flags: 0 })));
    }
  }

  next(taken: number): Step | null {
    for (const slot of [0, ORACLE_SLOT]) {
      if (this.#isConnected[slot]) continue;
      if (slot === ORACLE_SLOT) this.#queue.unshift(this.#request(slot, requests.auth('digest', 'super:test')));
      return connectStep(slot, { session: 'new' });
    }
    const queued = this.#queue.shift();
    if (queued !== undefined) return queued;
    return taken < this.#steps ? this.#step() : null;
  }

  learn(step: Step, result: StepResult): void {
    this.#isConnected[step.slot] = !result.isClosed;
  }

  replay(taken: number): string {
    return `seed ${this.#seed} of SystemScript, ${taken} steps`;
  }

  #step(): Step {
    const random = this.#random;
    const slot = random.oneIn(4) ? ORACLE_SLOT : 0;
    const request = this.#write();
    for (const path of QUOTA_ZNODES) this.#queue.push(this.#request(0, requests.watchedRead(Op.getData, path, false)));
    const read = random.pick([...SYSTEM_ZNODES, ...QUOTA_ZNODES]);
    for (const type of READS) this.#queue.push(this.#request(slot, readOf(type, read)));
    return this.#request(slot, request);
  }

  #write(): Request {
    const random = this.#random;
    const kind = random.weighted({ tree: 40, quota: 30, system: 20, multi: 6 });
    switch (kind) {
      case 'tree':
        return this.#writeTo(random.pick(TREE), random.bytes(random.below(9)));
      case 'quota':
        return this.#writeTo(random.pick(QUOTA_ZNODES), this.#quotaText());
      case 'system':
        return this.#writeTo(random.pick(SYSTEM_ZNODES), this.#quotaText());
      case 'multi':
        return requests.multi(Op.multi, [
          requests.create(Op.create, this.#znode(random.pick(TREE), random.bytes(5))),
          requests.create(Op.create, this.#znode(random.pick(QUOTA_ZNODES), this.#quotaText())),
          requests.setData(random.pick(TREE), random.bytes(random.below(9)), -1),
        ]);
    }
  }

  #writeTo(path: string, data: Buffer): Request {
    const random = this.#random;
    switch (random.weighted({ create: 30, setData: 20, delete: 14, setAcl: 2 })) {
      case 'create': {
        const type = random.pick([Op.create, Op.create, Op.create2, Op.createContainer]);
        return requests.create(type, this.#znode(path, this.#maybeNull(path, data), type));
      }
      case 'setData': {
        const version = random.oneIn(6) ? 0 : -1;
        // An unparsable one terminates Apache's server.
        if (path.endsWith(STATS)) return requests.setData(path, Buffer.from(random.pick(USAGE_TEXTS)), version);
        return requests.setData(path, this.#maybeNull(path, data), version);
      }
      case 'delete':
        return requests.pathAndVersion(Op.delete, path, -1);
      case 'setAcl':
        // Not of the root and /zookeeper, which would lock out all clients.
        return requests.setAcl(path.length < 12 ? '/zookeeper/config' : path, OPEN_ACL, random.pick([-1, 0]));
    }
  }

  /** Not for limits: if Apache's server cannot parse them, every later write fails. */
  #maybeNull(path: string, data: Buffer): Buffer | null {
    return this.#random.oneIn(12) && !path.endsWith(LIMITS) ? null : data;
  }

  #znode(path: string, data: Buffer | null, type: number = Op.create): requests.NewZnode {
    const acl: readonly AclEntry[] = OPEN_ACL;
    const flags = type === Op.createContainer ? 4 : this.#random.pick([0, 0, 0, 0, 1, 2]);
    return { path, data, acl, flags };
  }

  #quotaText(): Buffer {
    return Buffer.from(this.#random.pick(LIMIT_TEXTS));
  }

  #request(slot: number, request: Request): RequestStep {
    const xid = request.type === Op.auth ? -4 : null;
    return { kind: 'request', slot, xid, relativeZxid: null, facts: {}, ...request };
  }
}

function readOf(type: number, path: string): Request {
  const hasFlag = type === Op.exists || type === Op.getData || type === Op.getChildren2;
  return hasFlag ? requests.watchedRead(type, path, false) : requests.pathOnly(type, path);
}
