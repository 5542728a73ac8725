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

/** The znode of an instance that no session holds. It is not watched: what others do to it stays until it is written again. */
export class LastingZnode {
  readonly #client: Client;
  readonly #path: string;
  readonly #acl: readonly Acl[];
  readonly #closing = new AbortController();
  readonly #writing: Attempt;
  #written: Promise<void>;
  /** What it holds, or will. */
  #data: string;
  /** What was written last. */
  #held: string;
  #isPresent = false;
  /** A write has been applied, or may have been. */
  #mayExist = false;
  /** As it was written last; null when a write since may have been applied. */
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
      // It may be there although what was set since was refused.
      if (!this.#isPresent) throw error;
    });
    await new Attempt(this.#client, options, about).waitFor(written);
  }

  /** In the order of the calls. */
  async set(data: string, options: CallOptions): Promise<void> {
    this.#data = data;
    // What was refused before, because it was too large say, does not stand in the way of what comes now.
    this.#written = this.#written.catch(() => {}).then(() => this.#writeOrForget(data));
    ignoreRejection(this.#written);
    const about = { operation: 'Registration.update', path: this.#path };
    await new Attempt(this.#client, options, about, { isUnderWay: true }).waitFor(this.#written);
  }

  /**
   * Deletes it, once. Resolves when it is gone, or there is no connection: then it goes with the next one.
   *
   * @throws what the service refuses that for; it may be tried again. Nothing happens to a caller who does not wait for it
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
   * As long as the connection stands, the znode that is found is what was registered here, no matter who wrote to it. Once
   * it was away, another client may have registered the same id: what has changed since it was seen last is left to them. So is
   * another znode in its place, and whatever is there when nothing was registered here yet.
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
          // Gone, or another client's by now.
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
      // Refused for the connections that it cost, it may have been applied nevertheless.
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
        // What was given first is tried as long as there is nothing else.
        throw data === this.#held && data === this.#data ? error : reason;
      }
    });
    this.#held = data;
    this.#isPresent = true;
  }

  /** Others may make it and delete it meanwhile. @returns null from servers that do not send it */
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
        // Made by an attempt before this one, or by another client: once more, to write the data.
        if (!(error instanceof NodeExistsError)) throw error;
      }
    }
  }

  /** The znode of a process that had registered the same id for as long as it lives would go with its session. */
  async #replace(stat: Stat, data: string): Promise<Stat | null> {
    const [, created] = await this.#client
      .transaction()
      .delete(this.#path, { version: stat.version })
      .create(this.#path, data, { acl: this.#acl })
      .commit({ signal: this.#closing.signal });
    return created.stat;
  }
}

/** Another client has deleted it, or written to it, between the look and the write. */
function isOvertaken(error: unknown): boolean {
  const cause = error instanceof TransactionError ? error.cause : error;
  return [NoNodeError, BadVersionError, NodeExistsError].some((kind) => cause instanceof kind);
}
