import { Op } from '../harness/raw-client.ts';
import { OPEN_ACL, record } from '../harness/record-builder.ts';
import { damaged } from './damage.ts';
import type { Guard } from './guard.ts';
import { isEmptyMulti, MultiGenerator } from './multi-generator.ts';
import { QuotaGenerator } from './quota-generator.ts';
import type { Random } from './random.ts';
import type { Request } from './requests.ts';
import * as requests from './requests.ts';
import { ORACLE_SLOT, SLOTS } from './slots.ts';
import type { ConnectStep, FrameStep, RequestStep, Step, StepFacts } from './step.ts';
import * as vocabulary from './vocabulary.ts';
import { WatchGenerator } from './watch-generator.ts';

/** The result of a step, as reported to the generator. */
export interface StepResult {
  readonly error: number;
  readonly isClosed: boolean;
  /** The session was closed or refused: the slot needs a new one. */
  readonly isSessionGone: boolean;
  /** The sequential znodes named in the reply. */
  readonly sequentials: readonly string[];
  /** The last zxid of the server, in the script's numbering. */
  readonly zxid: bigint;
}

const CREATE_TYPES: readonly number[] = [Op.create, Op.create, Op.create2, Op.createContainer, Op.createTTL];
const CLOSED_XIDS: readonly number[] = [0, -2, -4, -8, -3, 2147483647, -2147483648];

/**
 * Generates the script: each step depends on the seed and on the results of earlier steps (names of sequential znodes,
 * closed connections, zxids).
 */
export class Generator {
  readonly #random: Random;
  readonly #watches: WatchGenerator;
  readonly #multis: MultiGenerator;
  readonly #quotas: QuotaGenerator;
  readonly #isConnected: boolean[] = Array.from({ length: SLOTS + 1 }, () => false);
  readonly #needsNewSession: boolean[] = Array.from({ length: SLOTS + 1 }, () => true);
  /** Paths of sequential znodes that may still exist. */
  readonly #sequentials: string[] = [];
  readonly #opening: Step[];
  #zxid = 0n;

  constructor(random: Random) {
    this.#random = random;
    this.#watches = new WatchGenerator(random);
    this.#multis = new MultiGenerator(random, (paths) => this.#path(paths));
    this.#quotas = new QuotaGenerator(random, this.#multis, (path) => this.#read(path));
    this.#opening = this.#openingSteps();
  }

  next(guard: Guard): Step {
    const opening = this.#opening.shift();
    if (opening !== undefined) return opening;
    const slot = this.#random.below(SLOTS);
    if (!this.#isConnected[slot]) return this.#connectStep(slot);
    const kind = this.#random.weighted({ open: 640, guarded: 90, quota: 50, damaged: 60, odd: 40, session: 16 });
    switch (kind) {
      case 'open':
        return this.#openStep(slot, guard);
      case 'guarded':
        return this.#guardedStep(slot, guard);
      case 'quota':
        return this.#quotaStep(slot);
      case 'damaged':
        return this.#damagedStep(slot);
      case 'odd':
        return this.#oddStep(slot);
      case 'session':
        return this.#sessionStep(slot);
    }
  }

  learn(step: Step, result: StepResult): void {
    if (result.zxid > this.#zxid) this.#zxid = result.zxid;
    this.#isConnected[step.slot] = !result.isClosed;
    if (step.kind === 'connect' && !result.isClosed) this.#needsNewSession[step.slot] = false;
    if (result.isSessionGone) this.#needsNewSession[step.slot] = true;
    this.#sequentials.push(...result.sequentials);
  }

  /** Sessions, the roots of the regions, and a quota. */
  #openingSteps(): Step[] {
    const steps: Step[] = [];
    for (let slot = 0; slot <= SLOTS; slot++) {
      steps.push(connectStep(slot, { session: 'new' }));
    }
    steps.push(this.#request(ORACLE_SLOT, requests.auth('digest', 'super:test')));
    const roots = ['/o', '/g', '/q', '/m', ...vocabulary.QUOTA_NODES];
    for (const path of roots) {
      const limits = path.endsWith('limits') ? 'count=-1,bytes=-1=;byteHardLimit=60;countHardLimit=5' : '';
      const data = path.endsWith('stats') ? 'count=0,bytes=0' : limits;
      const znode = { path, data: Buffer.from(data), acl: OPEN_ACL, flags: 0 };
      steps.push(this.#request(0, requests.create(Op.create, znode)));
    }
    return steps;
  }

  /* ------------------------------------------------------------------------------------------- regions ---- */

  #openStep(slot: number, guard: Guard): Step {
    const random = this.#random;
    const kind = random.weighted({
      ...{ create: 170, delete: 110, deleteSequential: 130, setData: 60, read: 90, acl: 20, multi: 60, multiRead: 15 },
      ...{ watchedRead: 60, watchOp: 60, misc: 40 },
    });
    const path = this.#path(vocabulary.OPEN_PATHS);
    switch (kind) {
      case 'create':
        return this.#request(slot, this.#create(path));
      case 'delete':
        return this.#request(slot, requests.pathAndVersion(Op.delete, path, random.pick(vocabulary.VERSIONS)));
      case 'deleteSequential':
        return this.#deleteSequential(slot);
      case 'setData':
        return this.#request(slot, requests.setData(path, this.#data(), random.pick(vocabulary.VERSIONS)));
      case 'read':
        return this.#request(slot, this.#read(path));
      case 'acl': {
        const acl = random.oneIn(2) ? OPEN_ACL : random.pick(vocabulary.ODD_ACLS);
        return this.#request(slot, requests.setAcl(path, acl, random.pick(vocabulary.VERSIONS)));
      }
      case 'multi': {
        const { request, facts } = this.#multis.next(vocabulary.OPEN_PATHS);
        return this.#request(slot, request, facts);
      }
      case 'multiRead':
        return this.#request(slot, this.#multis.nextRead(vocabulary.OPEN_PATHS));
      case 'watchedRead': {
        const type = random.pick([Op.exists, Op.getData, Op.getChildren, Op.getChildren2]);
        return this.#request(slot, this.#watches.read(slot, type, path));
      }
      case 'watchOp':
        return this.#watchStep(slot, path, guard);
      case 'misc':
        return this.#request(slot, this.#misc(path));
    }
  }

  #watchStep(slot: number, path: string, guard: Guard): Step {
    const { request, relativeZxid } = this.#watches.next(slot, path, this.#zxid, guard);
    return { ...this.#request(slot, request), relativeZxid };
  }

  #guardedStep(session: number, guard: Guard): Step {
    const random = this.#random;
    const slot = random.oneIn(3) ? ORACLE_SLOT : session;
    const path = this.#path(vocabulary.GUARDED_PATHS);
    const acl = (): (typeof vocabulary.GUARDING_ACLS)[number] => random.pick(vocabulary.GUARDING_ACLS);
    const version = random.pick(vocabulary.VERSIONS);
    const kind = random.weighted({ create: 20, setAcl: 15, delete: 14, setData: 14, read: 25, auth: 4, watch: 30 });
    switch (kind) {
      case 'create': {
        const type = random.oneIn(2) ? Op.create : Op.create2;
        const request = requests.create(type, { path, data: this.#data(), acl: acl(), flags: 0 });
        return this.#request(slot, request, { guardedPaths: [path] });
      }
      case 'setAcl':
        return this.#request(slot, requests.setAcl(path, acl(), version), { guardedPaths: [path] });
      case 'delete':
        return this.#request(slot, requests.pathAndVersion(Op.delete, path, version), { guardedPaths: [path] });
      case 'setData':
        return this.#request(slot, requests.setData(path, this.#data(), version), { guardedPaths: [path] });
      case 'read':
        return this.#request(
          slot,
          random.oneIn(4) ? this.#multis.nextRead(vocabulary.GUARDED_PATHS) : this.#read(path),
        );
      case 'auth': {
        const { scheme, credentials } = random.pick(vocabulary.AUTHS);
        return this.#request(session, requests.auth(scheme, credentials), { auth: { scheme, credentials } });
      }
      case 'watch': {
        // A refused read sets no watch; exists is left out because only newer releases refuse it.
        const type = random.pick([Op.getData, Op.getChildren, Op.getChildren2]);
        if (random.oneIn(2)) return this.#request(session, this.#watches.read(session, type, path));
        return this.#watchStep(session, path, guard);
      }
    }
  }

  #quotaStep(slot: number): Step {
    const { request, facts } = this.#quotas.next();
    return this.#request(slot, request, facts);
  }

  #damagedStep(slot: number): Step {
    const random = this.#random;
    const path = random.pick(vocabulary.DAMAGED_PATHS);
    const kind = random.weighted({ create: 4, delete: 1, setData: 2, read: 4, setAcl: 2, multi: 2, other: 3 });
    let facts: StepFacts = {};
    const requestOf = (): Request => {
      switch (kind) {
        case 'create':
          return this.#create(path);
        case 'delete':
          return requests.pathAndVersion(Op.delete, path, -1);
        case 'setData':
          return requests.setData(path, this.#data(), -1);
        case 'read':
          return this.#read(path);
        case 'setAcl':
          return requests.setAcl(path, OPEN_ACL, -1);
        case 'multi': {
          const multi = this.#multis.next(vocabulary.DAMAGED_PATHS, { isPlain: true });
          facts = multi.facts;
          return multi.request;
        }
        case 'other': {
          const type = random.pick([Op.addWatch, Op.removeWatches, Op.checkWatches, Op.reconfig, Op.sync]);
          return requests.bare(type, record().ustring(path).build());
        }
      }
    };
    const request = requestOf();
    if (random.oneIn(4) || isEmptyMulti(request)) return this.#request(slot, request, facts);
    // A damaged multi could become one that releases treat differently, and a damaged createTTL could crash Apache's
    // server; so these are only truncated.
    const isCut = request.type === Op.multi || request.type === Op.createTTL || kind === 'other';
    const cut = request.body.subarray(0, random.below(request.body.length));
    const broken = isCut ? { ...request, body: cut, text: `${request.text} (cut)` } : damaged(request, random);
    return this.#request(slot, broken ?? request, { ...facts, isDamaged: true });
  }

  /** Requests and frames that no well-behaved client sends. */
  #oddStep(slot: number): Step {
    const random = this.#random;
    const kind = random.weighted({ path: 40, xid: 12, unknown: 4, frame: 3, auth: 5, sasl: 3, body: 6, address: 3 });
    const path = random.pick(vocabulary.ODD_PATHS);
    switch (kind) {
      case 'path':
        return this.#request(slot, this.#oddPath(slot, path));
      case 'xid':
        return { ...this.#request(slot, this.#read('/o')), xid: random.pick(CLOSED_XIDS) };
      case 'unknown':
        return this.#request(slot, requests.bare(random.pick(vocabulary.UNKNOWN_OPS), random.bytes(random.below(12))));
      case 'frame':
        return this.#frameStep(slot);
      case 'auth': {
        const { scheme, credentials } = random.pick(vocabulary.REFUSED_AUTHS);
        return this.#request(slot, requests.auth(scheme, credentials), { auth: { scheme, credentials } });
      }
      case 'sasl':
        return this.#request(
          slot,
          requests.bare(
            Op.sasl,
            record()
              .buffer(random.bytes(random.below(5)))
              .build(),
          ),
        );
      case 'body': {
        const type = random.pick([Op.ping, Op.whoAmI, Op.reconfig, Op.setWatches, Op.setWatches2, Op.auth]);
        return this.#request(slot, requests.bare(type, random.bytes(random.below(7))), { isDamaged: true });
      }
      case 'address': {
        const acl = [{ perms: 31, scheme: 'ip', id: random.pick(vocabulary.FOREIGN_ADDRESSES) }];
        return this.#request(slot, requests.setAcl('/never/there', acl, -1));
      }
    }
  }

  #oddPath(slot: number, path: string | null): Request {
    const random = this.#random;
    const kind = random.weighted({ create: 10, delete: 4, setData: 4, setAcl: 3, read: 8, watch: 6, multi: 3 });
    switch (kind) {
      case 'create': {
        const acl = random.oneIn(3) ? random.pick(vocabulary.ODD_ACLS) : OPEN_ACL;
        return requests.create(Op.create, { path, data: null, acl, flags: random.pick([0, 1, 2, 3, 9, -1]) });
      }
      case 'delete':
        return requests.pathAndVersion(Op.delete, path, -1);
      case 'setData':
        return path === '/zookeeper/config' || path === '/'
          ? requests.setData('/nope', null, -1)
          : requests.setData(path, this.#data(), random.pick(vocabulary.VERSIONS));
      case 'setAcl':
        return requests.setAcl(path === '/' ? '/nope' : path, OPEN_ACL, 7);
      case 'read':
        return this.#read(path);
      case 'watch': {
        const type = random.pick([Op.exists, Op.getData, Op.getChildren, Op.getChildren2]);
        return this.#watches.read(slot, type, path);
      }
      case 'multi':
        return requests.multi(Op.multi, [
          requests.pathAndVersion(Op.check, path ?? '', -1),
          requests.pathAndVersion(Op.delete, random.pick(vocabulary.ODD_PATHS_IN_MULTI), -1),
        ]);
    }
  }

  #frameStep(slot: number): FrameStep {
    const random = this.#random;
    const length = random.pick([0, 1, 4, 7, -1, -2147483648, 1_048_576 + random.below(3), 2147483647]);
    const payload = length >= 0 && length < 8 ? Buffer.alloc(length, random.below(256)) : Buffer.alloc(0);
    const bytes = record().int(length).raw(payload).build();
    return { kind: 'frame', slot, bytes, text: `frame of length ${length}` };
  }

  /* ------------------------------------------------------------------------------------------ sessions ---- */

  #sessionStep(slot: number): Step {
    const random = this.#random;
    const kind = random.weighted({ close: 5, reconnect: 8, takeOver: 3 });
    switch (kind) {
      case 'close':
        return this.#request(slot, requests.bare(Op.closeSession));
      case 'reconnect':
        return this.#connectStep(slot);
      case 'takeOver':
        return { ...connectStep(slot, { session: 'same' }), keepsOldConnection: true, text: 'takes its session over' };
    }
  }

  #connectStep(slot: number): ConnectStep {
    const random = this.#random;
    const isNew = this.#needsNewSession[slot] ?? true;
    const sessions = [
      'same',
      'same',
      'same',
      'same',
      'same',
      'unknown',
      'wrong password',
      'short password',
      'null password',
    ] as const;
    const session = isNew && !random.oneIn(6) ? 'new' : random.pick(sessions);
    return connectStep(slot, {
      session,
      timeoutMs: random.pick([-1, 0, 1, 30_000, 4_000_000, 5_000_000, 8_000_000, 2147483647, -2147483648]),
      lastZxidSeen: random.oneIn(12) ? 'future' : random.pick(['seen', 'none']),
      readOnly: random.pick([false, false, true, null]),
    });
  }

  /* ---------------------------------------------------------------------------------------- ingredients ---- */

  #create(path: string): Request {
    const random = this.#random;
    const type = random.pick(CREATE_TYPES);
    const acl = random.oneIn(12) ? random.pick(vocabulary.ODD_ACLS) : OPEN_ACL;
    if (random.oneIn(20)) {
      const flags = random.pick([-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 2147483647]);
      const isOtherKind = flags >= 0 && flags < 5;
      // A negative TTL with the flags of another mode terminates Apache's server.
      const ttl = isOtherKind ? random.pick([0n, 1n, 3_600_000n]) : random.pick(vocabulary.TTLS);
      return requests.create(type, { path, data: this.#data(), acl, flags, ttl });
    }
    const flags =
      type === Op.createContainer
        ? 4
        : type === Op.createTTL
          ? random.pick([5, 5, 6])
          : random.pick([0, 0, 1, 1, 2, 3]);
    const isSequential = flags === 2 || flags === 3 || flags === 6;
    const where = isSequential && path.startsWith('/o') ? `${random.pick(vocabulary.SEQUENCE_PARENTS)}/s` : path;
    const ttl = random.oneIn(4) ? random.pick(vocabulary.TTLS) : 3_600_000n;
    return requests.create(type, { path: where, data: this.#data(), acl, flags, ttl });
  }

  #deleteSequential(slot: number): Step {
    const random = this.#random;
    const index = random.below(this.#sequentials.length || 1);
    const path = this.#sequentials.splice(index, 1)[0] ?? '/o/s0000000001';
    return this.#request(slot, requests.pathAndVersion(Op.delete, path, -1));
  }

  #read(path: string | null): Request {
    const random = this.#random;
    const type = random.pick([
      ...[Op.exists, Op.getData, Op.getChildren, Op.getChildren2, Op.getACL, Op.getAllChildrenNumber, Op.sync],
    ]);
    const hasFlag = type === Op.exists || type === Op.getData || type === Op.getChildren || type === Op.getChildren2;
    return hasFlag ? requests.watchedRead(type, path, false) : requests.pathOnly(type, path);
  }

  #misc(path: string): Request {
    const random = this.#random;
    switch (random.weighted({ ping: 4, whoAmI: 3, ephemerals: 8, count: 3, reconfig: 1 })) {
      case 'ping':
        return requests.bare(Op.ping);
      case 'whoAmI':
        return requests.bare(Op.whoAmI);
      case 'ephemerals': {
        const prefix = random.oneIn(6) ? path : random.pick(vocabulary.EPHEMERAL_PREFIXES);
        return requests.pathOnly(Op.getEphemerals, prefix);
      }
      case 'count':
        return requests.pathOnly(Op.getAllChildrenNumber, random.pick([path, '/', '/o']));
      case 'reconfig': {
        const body = record().ustring('server.2=127.0.0.1:1:2:participant;3').ustring(null).ustring(null).long(-1n);
        return requests.bare(Op.reconfig, body.build());
      }
    }
  }

  /** Usually one of the given paths; sometimes a sequential znode. */
  #path(paths: readonly string[]): string {
    const random = this.#random;
    const sequential = this.#sequentials[this.#sequentials.length - 1];
    if (sequential !== undefined && paths === vocabulary.OPEN_PATHS && random.oneIn(15)) return sequential;
    return random.pick(paths);
  }

  #data(): Buffer | null {
    const random = this.#random;
    if (random.oneIn(12)) return null;
    return random.bytes(random.oneIn(200) ? 5000 : random.below(24));
  }

  #request(slot: number, request: Request, facts: StepFacts = {}): RequestStep {
    const xid = request.type === Op.ping ? -2 : request.type === Op.auth ? -4 : null;
    return { kind: 'request', slot, xid, relativeZxid: null, facts, ...request };
  }
}

type ConnectChoices = Pick<ConnectStep, 'session'> & Partial<ConnectStep>;

export function connectStep(slot: number, choices: ConnectChoices): ConnectStep {
  const step: ConnectStep = {
    kind: 'connect',
    slot,
    timeoutMs: 5_000_000,
    lastZxidSeen: 'seen',
    readOnly: false,
    keepsOldConnection: false,
    text: '',
    ...choices,
  };
  const text =
    `connects, session ${step.session}, timeout ${step.timeoutMs}, lastZxidSeen ${step.lastZxidSeen}, ` +
    `readOnly ${step.readOnly}`;
  return { ...step, text };
}
