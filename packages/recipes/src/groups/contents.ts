import { type Data, ZooKeeperError } from '@meerkat/client';
import { Latest } from '../kernel/latest.ts';
import { Draft } from './draft.ts';

/** The data that our ephemeral znode is to hold, and what it is known to hold. */
export class Contents {
  readonly #path: string;
  #draft: Draft;
  /** The data to hold when later data is refused: what a znode held last, or the initial data. */
  #kept: Draft;
  /** Of the znode that was created or written last and holds `#kept`; null for none. */
  #czxid: bigint | null = null;
  /** Something may have been written to it since. */
  #isDoubtful = false;
  readonly #writtenRevision: Latest<number> = new Latest();
  /** Drafts after `since`, up to `revision`, were refused and are discarded. */
  #refused: { readonly since: number; readonly revision: number; readonly error: Error } | null = null;

  /** @param path of the znode, for errors */
  constructor(path: string, data: Data) {
    this.#path = path;
    this.#draft = new Draft(data);
    this.#kept = this.#draft;
  }

  /** What the znode holds, or is to hold. */
  get draft(): Draft {
    return this.#draft;
  }

  /** Of the znode that was written last; null for none. */
  get czxid(): bigint | null {
    return this.#czxid;
  }

  /** Whether a znode holds the latest draft. */
  isHeldBy(czxid: bigint): boolean {
    return !this.#isDoubtful && this.#czxid === czxid && this.#kept.revision === this.#draft.revision;
  }

  set(data: Data): Draft {
    this.#draft = new Draft(data, this.#draft.revision + 1);
    return this.#draft;
  }

  /**
   * Resolves when the znode holds this draft or a later one, or the draft was refused; see `check`. Keeps nothing after
   * the signal.
   */
  written({ revision }: Draft, signal: AbortSignal): Promise<unknown> {
    return this.#writtenRevision.when((at) => at >= revision, signal);
  }

  /** @throws the error that a draft was refused with */
  check({ revision }: Draft): void {
    const refused = this.#refused;
    if (refused !== null && refused.since < revision && revision <= refused.revision) throw refused.error;
  }

  /** A znode was created or written with this draft. Its waiters are notified by `confirm`. */
  note(czxid: bigint, draft: Draft): void {
    this.#czxid = czxid;
    this.#kept = draft;
    this.#isDoubtful = false;
    draft.written();
  }

  /** Writing a draft has failed. @returns the error to report */
  failed(draft: Draft, error: unknown): unknown {
    this.#isDoubtful ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
    return draft.failed(error, this.#path);
  }

  /** The znode was seen to exist, with the noted draft. */
  confirm(): void {
    if (this.#czxid !== null) this.#writtenRevision.publish(this.#kept.revision);
  }

  /**
   * Discards a refused draft and returns to `#kept`.
   *
   * @returns false when `#kept` itself was refused: there would be nothing left to hold
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

  /** @param error for waiters; null after a regular end, for which they get `reason` */
  end(error: Error | null, reason: Error): void {
    this.#writtenRevision.end(error, reason);
  }
}
