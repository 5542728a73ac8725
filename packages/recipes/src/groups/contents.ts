import type { Data } from '@meerkat/client';
import { Latest } from './latest.ts';

/** What is to be written, and which it is of those that were given to `set`. */
export interface Draft {
  readonly data: Data;
  readonly revision: number;
}

/** What an ephemeral znode of ours is to hold, and what it was seen to hold. */
export class Contents {
  #draft: Draft;
  /** Which draft the znode with this czxid holds, or was refused and forgotten there. */
  #written: { readonly czxid: bigint; readonly revision: number } | null = null;
  /** What that znode holds. */
  #writtenData: Data = '';
  readonly #writtenRevision: Latest<number> = new Latest();
  /** What was given to `set` behind `since`, up to `revision`, was refused and is forgotten. */
  #refused: { readonly since: number; readonly revision: number; readonly error: Error } | null = null;

  constructor(data: Data) {
    this.#draft = { data, revision: 0 };
  }

  /** What the znode holds, or will. */
  get draft(): Draft {
    return this.#draft;
  }

  /** Of the znode that was written last; null for none. */
  get czxid(): bigint | null {
    return this.#written?.czxid ?? null;
  }

  /** Whether a znode holds what was given to `set` last. */
  isHeldBy(czxid: bigint): boolean {
    return this.#written?.czxid === czxid && this.#written.revision === this.#draft.revision;
  }

  set(data: Data): Draft {
    const { revision } = this.#draft;
    this.#draft = { data, revision: revision + 1 };
    return this.#draft;
  }

  /** Resolves when the znode holds a draft or a later one, or was refused it; `check` tells. */
  written({ revision }: Draft): Promise<unknown> {
    return this.#writtenRevision.when((at) => at >= revision);
  }

  /** @throws what a draft was refused for */
  check({ revision }: Draft): void {
    const refused = this.#refused;
    if (refused !== null && refused.since < revision && revision <= refused.revision) throw refused.error;
  }

  /** A znode was made or written so. Whoever waits for that is told by `confirm`. */
  note(czxid: bigint, { data, revision }: Draft): void {
    this.#written = { czxid, revision };
    this.#writtenData = data;
  }

  /** A znode was seen to be there, and holds what was noted. */
  confirm(): void {
    if (this.#written !== null) this.#writtenRevision.publish(this.#written.revision);
  }

  /**
   * What the service refuses is forgotten, and what the znode held before remains to be held.
   *
   * @returns false when it is not a new draft that was refused: nothing would be left to be held
   */
  refuse({ revision }: Draft, error: Error): boolean {
    const written = this.#written;
    if (written === null || written.revision >= revision) return false;
    this.#refused = { since: written.revision, revision, error };
    if (this.#draft.revision === revision) this.#draft = { data: this.#writtenData, revision };
    this.#written = { czxid: written.czxid, revision };
    this.confirm();
    return true;
  }

  /** @param error for those who wait; null after a good end, which they get `reason` for */
  end(error: Error | null, reason: Error): void {
    this.#writtenRevision.end(error, reason);
  }
}
