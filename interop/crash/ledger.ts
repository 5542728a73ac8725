import { ConnectionClosed, Op, RawClient, type Reply } from '../harness/raw-client.ts';
import { OPEN_ACL, record } from '../harness/record-builder.ts';
import { RecordReader } from '../harness/record-reader.ts';

/** The acknowledged state of one znode. */
interface Acknowledged {
  /** Version of the newest acknowledged change. */
  version: number;
  mzxid: bigint;
  /** The last requested version; changes after `version` may or may not have been applied. */
  versionAsked: number;
}

const REGISTERS = 8;
const NO_NODE = -101;

/**
 * Writes continuously and records every reply, to check the state after a crash.
 *
 * Three invariants:
 * 1. a register whose change to version v was acknowledged has at least version v, and the data of its version;
 * 2. an acknowledged create (plain, sequential, ephemeral) exists with its data and zxid, an acknowledged delete is not
 *    undone;
 * 3. no zxid is used twice: zxids after the crash are higher than all before it.
 */
export class Ledger {
  readonly #registers: Acknowledged[] = Array.from({ length: REGISTERS }, () => ({
    version: 0,
    mzxid: 0n,
    versionAsked: 0,
  }));
  /** Path → data, or null if deleted. */
  readonly #znodes = new Map<string, string | null>();
  #zxidMax = 0n;
  #created = 0;
  acknowledged = 0;

  async prepare(port: number): Promise<void> {
    const client = await RawClient.connect(port);
    const roots = ['/registers', '/created', '/sequential', '/ephemeral'];
    for (const path of roots) await client.demand(Op.create, createBody(path, '', 0));
    for (let i = 0; i < REGISTERS; i++) await client.demand(Op.create, createBody(registerPath(i), registerData(0), 0));
    await client.close();
  }

  /**
   * Keeps several requests in flight on the client until the server dies.
   *
   * @param onAcknowledged called after each reply; it decides when the server is killed
   */
  async write(client: RawClient, writer: number, onAcknowledged: () => void): Promise<void> {
    const lanes = Array.from({ length: 4 }, async (_, lane) => {
      for (let i = 0; ; i++) {
        await this.#writeOnce(client, writer * 4 + lane, i);
        this.acknowledged += 1;
        onAcknowledged();
      }
    });
    for (const lane of await Promise.allSettled(lanes)) {
      if (lane.status === 'rejected' && !(lane.reason instanceof ConnectionClosed)) throw lane.reason;
    }
  }

  /** Compares the restarted server with the ledger; throws if something is missing. */
  async check(client: RawClient): Promise<void> {
    const first = await client.demand(Op.create, createBody('/sequential/after-', 'after', 2));
    this.#require(first.zxid > this.#zxidMax, `zxid ${first.zxid} follows the acknowledged ${this.#zxidMax}`);
    this.#zxidMax = first.zxid;
    for (const [i, register] of this.#registers.entries()) await this.#checkRegister(client, i, register);
    const checks = [...this.#znodes].map(([path, data]) => this.#checkZnode(client, path, data));
    await Promise.all(checks);
  }

  async #writeOnce(client: RawClient, lane: number, i: number): Promise<void> {
    switch (i % 5) {
      case 0:
      case 1: {
        // Each lane has its own register, so that its versions are in order.
        const register = this.#registers[lane];
        if (register === undefined) throw new Error(`there is no register ${lane}`);
        const version = register.versionAsked + 1;
        register.versionAsked = version;
        const reply = await client.demand(Op.setData, setDataBody(registerPath(lane), registerData(version)));
        const stat = new RecordReader(reply.body).stat();
        register.version = stat.version;
        register.mzxid = stat.mzxid;
        this.#seen(reply);
        return;
      }
      case 2: {
        const number = this.#created;
        const path = `/created/${number}`;
        this.#created += 1;
        this.#seen(await client.demand(Op.create, createBody(path, path, 0)));
        this.#znodes.set(path, path);
        if (!isDeletedAgain(number)) return;
        this.#seen(await client.demand(Op.delete, record().ustring(path).int(-1).build()));
        this.#znodes.set(path, null);
        return;
      }
      case 3: {
        const reply = await client.demand(Op.create, createBody('/sequential/n-', 'sequential', 2));
        const path = this.#seen(reply).ustring() ?? '';
        this.#require(!this.#znodes.has(path), `${path} was given twice`);
        this.#znodes.set(path, 'sequential');
        return;
      }
      default: {
        const path = `/ephemeral/${this.#created}-${lane}`;
        this.#created += 1;
        this.#seen(await client.demand(Op.create, createBody(path, 'ephemeral', 1)));
        this.#znodes.set(path, 'ephemeral');
      }
    }
  }

  async #checkRegister(client: RawClient, i: number, register: Acknowledged): Promise<void> {
    const reply = await client.demand(Op.getData, record().ustring(registerPath(i)).bool(false).build());
    const reader = new RecordReader(reply.body);
    const data = reader.buffer()?.toString() ?? '';
    const stat = reader.stat();
    const what = `register ${i} (acknowledged version ${register.version}, found ${stat.version})`;
    this.#require(stat.version >= register.version, `${what} lost a change`);
    this.#require(stat.version <= register.versionAsked, `${what} has a version that was not asked for`);
    this.#require(data === registerData(stat.version), `${what} has the data ${data}`);
    if (stat.version === register.version && register.version > 0) {
      this.#require(stat.mzxid === register.mzxid, `${what} changed its mzxid`);
    }
    register.version = stat.version;
    register.versionAsked = stat.version;
    register.mzxid = stat.mzxid;
  }

  async #checkZnode(client: RawClient, path: string, data: string | null): Promise<void> {
    const reply = await client.request(Op.getData, record().ustring(path).bool(false).build());
    if (data === null) {
      this.#require(reply.error === NO_NODE, `the deleted ${path} is there again`);
      return;
    }
    // A delete in flight may have been applied.
    if (reply.error === NO_NODE && this.#mayBeDeleted(path)) {
      this.#znodes.set(path, null);
      return;
    }
    this.#require(reply.error === 0, `${path} was acknowledged and is gone (error ${reply.error})`);
    const found = new RecordReader(reply.body).buffer()?.toString();
    this.#require(found === data, `${path} has the data ${found} instead of ${data}`);
  }

  #mayBeDeleted(path: string): boolean {
    const number = /^\/created\/(\d+)$/.exec(path)?.[1];
    return number !== undefined && isDeletedAgain(Number(number));
  }

  #seen(reply: Reply): RecordReader {
    if (reply.zxid > this.#zxidMax) this.#zxidMax = reply.zxid;
    return new RecordReader(reply.body);
  }

  #require(holds: boolean, otherwise: string): void {
    if (!holds) throw new Error(otherwise);
  }
}

/** Every third created znode is deleted immediately. */
function isDeletedAgain(number: number): boolean {
  return number % 3 === 2;
}

function registerPath(i: number): string {
  return `/registers/${i}`;
}

function registerData(version: number): string {
  return `data of version ${version}`;
}

function createBody(path: string, data: string, flags: number): Buffer {
  return record().ustring(path).buffer(Buffer.from(data)).acls(OPEN_ACL).int(flags).build();
}

function setDataBody(path: string, data: string): Buffer {
  return record().ustring(path).buffer(Buffer.from(data)).int(-1).build();
}
