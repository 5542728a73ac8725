import { type Acl, type CallOptions, type Client, NodeExistsError, NoNodeError, ZooKeeperError } from '@meerkat/client';
import { neverAborted, orDisconnected, untilDone, withLimits } from './persistence.ts';

/** The znode of an instance that no session holds. */
export class LastingZnode {
  readonly #client: Client;
  readonly #path: string;
  readonly #acl: readonly Acl[];
  readonly #closing = new AbortController();
  #written: Promise<void>;
  /** What it holds, or will. */
  #data: string;
  /** What was written last. */
  #held: string;
  #isPresent = false;

  constructor(client: Client, path: string, acl: readonly Acl[], data: string) {
    this.#client = client;
    this.#path = path;
    this.#acl = acl;
    this.#data = data;
    this.#held = data;
    this.#written = this.#write(data);
    this.#written.catch(() => {});
  }

  get data(): string {
    return this.#data;
  }

  get isPresent(): boolean {
    return this.#isPresent;
  }

  async whenPresent(options: CallOptions): Promise<void> {
    // Also when what was set since was refused.
    if (!this.#isPresent) await within(this.#client, options, this.#path, this.#written);
  }

  /** In the order of the calls. */
  async set(data: string, options: CallOptions): Promise<void> {
    this.#data = data;
    // What was refused before, because it was too large say, does not stand in the way of what comes now.
    this.#written = this.#written.catch(() => {}).then(() => this.#writeOrForget(data));
    this.#written.catch(() => {});
    await within(this.#client, options, this.#path, this.#written);
  }

  async #writeOrForget(data: string): Promise<void> {
    try {
      await this.#write(data);
    } catch (error) {
      if (this.#data === data) this.#data = this.#held;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#written.catch(() => {});
    this.#isPresent = false;
    const deleted = untilDone(this.#client, neverAborted(), () => this.#client.delete(this.#path)).catch(
      (error: unknown) => {
        if (!(error instanceof ZooKeeperError)) throw error;
      },
    );
    await orDisconnected(this.#client, deleted);
  }

  async #write(data: string): Promise<void> {
    const { signal } = this.#closing;
    await untilDone(this.#client, signal, async () => {
      try {
        await this.#client.set(this.#path, data, { signal });
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
        const shape = { acl: this.#acl, parentMode: 'container', signal } as const;
        await this.#client.createParents(this.#path, data, shape).catch((failure: unknown) => {
          // Made by an attempt before this one: once more, to write the data.
          if (failure instanceof NodeExistsError) return this.#client.set(this.#path, data, { signal });
          throw failure;
        });
      }
    });
    this.#held = data;
    this.#isPresent = true;
  }
}

function within(client: Client, options: CallOptions, path: string, waited: Promise<void>): Promise<void> {
  return withLimits(client, options, { operation: 'whenRegistered', path }, waited);
}
