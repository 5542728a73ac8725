import {
  AbortedError,
  type Acl,
  BadVersionError,
  type CallOptions,
  type Client,
  NodeExistsError,
  NoNodeError,
  type Stat,
  TransactionError,
  ZooKeeperError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { ignoreRejection, orDisconnected, unlessClientEnds } from '../kernel/background.ts';
import { COSTLY_PAUSE_MS, Draft, isRefusal } from './draft.ts';

/** The persistent znode of an instance. It is not watched: changes by others stay until it is written again. */
export class LastingZnode {
  readonly #client: Client;
  readonly #path: string;
  readonly #acl: readonly Acl[];
  readonly #closing = new AbortController();
  readonly #writing: Attempt;
  #written: Promise<void>;
  /** What it holds, or is to hold. */
  #data: string;
  /** What was written last. */
  #held: string;
  #isPresent = false;
  /** A write has been, or may have been, applied. */
  #mayExist = false;
  /** The Stat of the last write; null when a later write may have been applied. */
  #known: Stat | null = null;
  #closed: Promise<void> | null = null;

  constructor(client: Client, path: string, acl: readonly Acl[], data: string) {
    this.#client = client;
    this.#path = path;
    this.#acl = acl;
    this.#data = data;
    this.#held = data;
    const about = { operation: 'register', path };
    this.#writing = new Attempt(client, { signal: this.#closing.signal }, about, { awaitsQuorum: true });
    this.#written = this.#write(data);
    ignoreRejection(this.#written);
  }

  get data(): string {
    return this.#data;
  }

  get isPresent(): boolean {
    return this.#isPresent && !this.#closing.signal.aborted;
  }

  async whenPresent(options: CallOptions): Promise<void> {
    const about = { operation: 'whenRegistered', path: this.#path };
    if (this.#closing.signal.aborted) throw new AbortedError({ ...about, detail: 'it was closed' });
    if (this.#isPresent) return;
    const written = this.#written.catch((error: unknown) => {
      // It may exist although later data was refused.
      if (!this.#isPresent) throw error;
    });
    await new Attempt(this.#client, options, about).waitFor(written);
  }

  /** In the order of the calls. */
  async set(data: string, options: CallOptions): Promise<void> {
    this.#data = data;
    // An earlier refusal, for instance because of the size, does not prevent later writes.
    this.#written = this.#written.catch(() => {}).then(() => this.#writeOrForget(data));
    ignoreRejection(this.#written);
    const about = { operation: 'Registration.update', path: this.#path };
    await new Attempt(this.#client, options, about, { isUnderWay: true }).waitFor(this.#written);
  }

  /**
   * Deletes it, once. Resolves when it is gone; without a connection at once, and it is deleted with the next one.
   *
   * @throws what the service refuses the deletion with; it may be retried. Nothing happens when the promise is not
   *   awaited
   */
  close(): Promise<void> {
    this.#closing.abort();
    this.#closed ??= ignoreRejection(
      this.#remove().catch((error: unknown) => {
        this.#closed = null;
        throw error;
      }),
    );
    return this.#closed;
  }

  /**
   * As long as the connection has not been lost, an existing znode is what was registered here, whoever wrote to it.
   * After a lost connection another client may have registered the same id: a znode that has changed since it was last
   * seen is left alone. So is another znode at its path, and any znode when nothing was registered here yet.
   */
  async #remove(): Promise<void> {
    const client = this.#client;
    let wasAway = client.state !== 'connected';
    const states = client.onState(({ state }) => {
      wasAway ||= state !== 'connected';
    });
    await this.#written.catch(() => {});
    let ours = this.#known;
    const removing = new Attempt(client, {}, { operation: 'close', path: this.#path }, { awaitsQuorum: true });
    const removed = removing
      .through(async () => {
        if (!this.#mayExist) return;
        const stat = await client.exists(this.#path, { read: 'linearizable' });
        ours ??= stat;
        if (stat === null || stat.czxid !== ours?.czxid) return;
        if (!wasAway) ours = stat;
        if (stat.version !== ours.version) return;
        try {
          await client.delete(this.#path, { version: stat.version });
        } catch (error) {
          // Gone, or replaced by another client.
          if (error instanceof NoNodeError || error instanceof BadVersionError) return;
          wasAway = true;
          throw error;
        }
      })
      .finally(() => states[Symbol.dispose]());
    await orDisconnected(client, unlessClientEnds(removed));
  }

  async #writeOrForget(data: string): Promise<void> {
    try {
      await this.#write(data);
    } catch (error) {
      if (this.#data === data) this.#data = this.#held;
      // Refused because of the connections that it cost, it may have been applied nevertheless.
      const isDoubtful = isRefusal(error) && this.#isPresent && this.#known === null;
      if (isDoubtful) await this.#write(this.#held).catch(() => {});
      throw error;
    }
  }

  async #write(data: string): Promise<void> {
    const draft = new Draft(data);
    await this.#writing.through(async () => {
      if (draft.isCostly) await this.#writing.pause(COSTLY_PAUSE_MS);
      try {
        this.#known = await this.#put(data);
        this.#mayExist = true;
      } catch (error) {
        if (error instanceof ZooKeeperError && error.outcome === 'unknown') {
          this.#known = null;
          this.#mayExist = true;
        }
        const reason = draft.failed(error, this.#path);
        // The initial data is retried as long as there is nothing else.
        throw data === this.#held && data === this.#data ? error : reason;
      }
    });
    this.#held = data;
    this.#isPresent = true;
  }

  /** Others may create and delete it meanwhile. @returns null from servers that do not send the Stat */
  async #put(data: string): Promise<Stat | null> {
    const { signal } = this.#closing;
    for (;;) {
      try {
        const stat = await this.#client.set(this.#path, data, { signal });
        return stat.isEphemeral ? await this.#replace(stat, data) : stat;
      } catch (error) {
        if (!isOvertaken(error)) throw error;
      }
      const shape = { acl: this.#acl, parentMode: 'container', signal } as const;
      try {
        return (await this.#client.createParents(this.#path, data, shape)).stat;
      } catch (error) {
        // Created by an earlier attempt or by another client: try again, to write the data.
        if (!(error instanceof NodeExistsError)) throw error;
      }
    }
  }

  /** An ephemeral znode, of a process that registered the same id as dynamic, would be deleted with its session. */
  async #replace(stat: Stat, data: string): Promise<Stat | null> {
    const [, created] = await this.#client
      .transaction()
      .delete(this.#path, { version: stat.version })
      .create(this.#path, data, { acl: this.#acl })
      .commit({ signal: this.#closing.signal });
    return created.stat;
  }
}

/** Another client has deleted or written it between the read and the write. */
function isOvertaken(error: unknown): boolean {
  const cause = error instanceof TransactionError ? error.cause : error;
  return [NoNodeError, BadVersionError, NodeExistsError].some((kind) => cause instanceof kind);
}
