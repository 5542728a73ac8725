import {
  type CallOptions,
  type Client,
  joinPath,
  NodeExistsError,
  NoNodeError,
  type Transaction,
  type TransactionResult,
  text,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { makeUuidHex } from '../kernel/layout.ts';
import { removeZnode } from '../kernel/removal.ts';

/** A write of unknown outcome. */
export interface Doubt {
  /** The contents of the witness if it was applied. */
  readonly id: string;
  readonly path: string;
  /** The session whose end removes the witness. */
  readonly sessionId: bigint;
}

export type Testimony =
  | 'applied'
  /** Not so far. */
  | 'not-applied'
  /** The witness is gone with its session, so that it proves neither. */
  | 'silent';

/**
 * Records, in a separate znode, which write was the last: each write is one transaction with a note of its id. When the
 * reply is lost, the note shows whether it was applied.
 *
 * The value itself cannot show that. Two clients that add one to the same version of a counter write the same bytes and
 * get the same version; one of them succeeds, and the data does not show which.
 *
 *     /hits                 00 00 00 00 00 00 00 2a
 *     /hits.witnesses       container: removed after the last of them
 *     /hits.witnesses/1f6c… "17", ephemeral: removed with the session of the writer
 */
export class Witness {
  readonly #client: Client;
  readonly #directory: string;
  #path = '';
  #sessionId = 0n;
  #exists = false;
  #count = 0;

  constructor(client: Client, directory: string) {
    this.#client = client;
    this.#directory = directory;
  }

  /** Adds the note to a transaction, after its operations. */
  note(transaction: Transaction<TransactionResult[]>): Doubt {
    // Between two sessions nothing is written; and the lost one may come back, with its witness.
    const sessionId = this.#client.session?.id ?? this.#sessionId;
    if (sessionId !== this.#sessionId || this.#path === '') {
      this.#path = joinPath(this.#directory, makeUuidHex(this.#client.surroundings.random));
      this.#sessionId = sessionId;
      this.#exists = false;
    }
    const id = `${++this.#count}`;
    if (this.#exists) transaction.set(this.#path, id);
    else transaction.create(this.#path, id, { mode: 'ephemeral' });
    return { id, path: this.#path, sessionId };
  }

  onApplied({ path }: Doubt): void {
    if (path === this.#path) this.#exists = true;
  }

  /** Handles a refusal of the note itself. @returns false when that does not help */
  async onRefused(cause: unknown, options: CallOptions): Promise<boolean> {
    if (cause instanceof NodeExistsError) {
      this.#exists = true;
      return true;
    }
    if (!(cause instanceof NoNodeError)) return false;
    if (this.#exists) {
      // It was deleted, or its session is over.
      this.#exists = false;
      return true;
    }
    try {
      await this.#client.createParents(this.#directory, null, { ...options, mode: 'container' });
    } catch (error) {
      if (!(error instanceof NodeExistsError)) throw error;
    }
    return true;
  }

  /** Whether a doubtful write was applied before this read. */
  async ask({ id, path, sessionId }: Doubt, options: CallOptions): Promise<Testimony> {
    try {
      const { data } = await this.#client.get(path, { ...options, read: 'linearizable', codec: text });
      if (path === this.#path) this.#exists = true;
      return data === id ? 'applied' : 'not-applied';
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      // `close` has removed it.
      if (path !== this.#path) return 'silent';
      this.#exists = false;
      // Answered in the session that would own it.
      return this.#client.session?.id === sessionId ? 'not-applied' : 'silent';
    }
  }

  /**
   * Deletes the znode, also one whose creation is in doubt. While it cannot be reached, that continues in the
   * background until it succeeds, or the znode is removed with the session. Never rejects.
   */
  async close(): Promise<void> {
    const path = this.#path;
    if (path === '') return;
    this.#path = '';
    this.#exists = false;
    const removed = removeZnode(this.#client, path, this.#sessionId);
    const attempt = new Attempt(this.#client, {}, { operation: 'Witness.close', path });
    await attempt.any([removed], { delayMs: CLOSE_MS });
  }
}

/** How long the caller waits, milliseconds. */
const CLOSE_MS = 10_000;
