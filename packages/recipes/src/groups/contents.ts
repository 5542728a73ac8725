import { type Data, ZooKeeperError } from '@meerkat/client';
import { Latest } from '../kernel/latest.ts';
import { Draft } from './draft.ts';

/** What an ephemeral znode of ours is to hold, and what it was seen to hold. */
export class Contents {
  readonly #path: string;
  #draft: Draft;
  /** What is to be held when what was set since is refused: what a znode held last, or what was given first of all. */
  #kept: Draft;
  /** Of the znode that was made or written last, which holds what is kept; null for none. */
  #czxid: bigint | null = null;
  /** Something may have been written to it since. */
  #isDoubtful = false;
  readonly #writtenRevision: Latest<number> = new Latest();
  /** What was given to `set` behind `since`, up to `revision`, was refused and is forgotten. */
  #refused: { readonly since: number; readonly revision: number; readonly error: Error } | null = null;

  /** @param path of the znode, for errors */
  constructor(path: string, data: Data) {
    this.#path = path;
    this.#draft = new Draft(data);
    this.#kept = this.#draft;
  }

  /** What the znode holds, or will. */
  get draft(): Draft {
    return this.#draft;
  }

  /** Of the znode that was written last; null for none. */
  get czxid(): bigint | null {
    return this.#czxid;
  }

  /** Whether a znode holds what was given to `set` last. */
  isHeldBy(czxid: bigint): boolean {
    return !this.#isDoubtful && this.#czxid === czxid && this.#kept.revision === this.#draft.revision;
  }

  set(data: Data): Draft {
    this.#draft = new Draft(data, this.#draft.revision + 1);
    return this.#draft;
  }

  /** Resolves when the znode holds a draft or a later one, or was refused it; `check` says so. Keeps nothing after the signal. */
  written({ revision }: Draft, signal: AbortSignal): Promise<unknown> {
    return this.#writtenRevision.when((at) => at >= revision, signal);
  }

  /** @throws what a draft was refused for */
  check({ revision }: Draft): void {
    const refused = this.#refused;
    if (refused !== null && refused.since < revision && revision <= refused.revision) throw refused.error;
  }

  /** A znode was made or written so. Waiters for that are notified by `confirm`. */
  note(czxid: bigint, draft: Draft): void {
    this.#czxid = czxid;
    this.#kept = draft;
    this.#isDoubtful = false;
    draft.written();
  }

  /** Writing a draft has failed. @returns what it has failed for */
  failed(draft: Draft, error: unknown): unknown {
    this.#isDoubtful ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
    return draft.failed(error, this.#path);
  }

  /** A znode was seen to be there, and holds what was noted. */
  confirm(): void {
    if (this.#czxid !== null) this.#writtenRevision.publish(this.#kept.revision);
  }

  /**
   * What the service refuses is forgotten, and what is kept remains to be held.
   *
   * @returns false when it is that itself which was refused: nothing would be left to be held
   */
  refuse({ revision }: Draft, error: Error): boolean {
    const kept = this.#kept;
    if (kept.revision >= revision) return false;
    this.#refused = { since: kept.revision, revision, error };
    this.#kept = new Draft(kept.data, revision);
    if (this.#draft.revision === revision) this.#draft = this.#kept;
    this.#writtenRevision.publish(revision);
    return true;
  }

  /** @param error for those who wait; null after a good end, which they get `reason` for */
  end(error: Error | null, reason: Error): void {
    this.#writtenRevision.end(error, reason);
  }
}
