import {
  AbortedError,
  type Acl,
  BadVersionError,
  type CallOptions,
  type Client,
  ClosedError,
  type Data,
  NoAuthError,
  NodeExistsError,
  NoNodeError,
  nullableBytes,
  OPEN,
  type Stat,
  TransactionError,
  text,
  type WatchStreamEvent,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { orDisconnected } from '../kernel/background.ts';
import { Pulse } from '../kernel/latest.ts';
import type { HeldOptions } from '../kernel/options.ts';
import { isSame } from '../kernel/same-bytes.ts';
import { heldSettings } from '../kernel/settings.ts';
import { Certainty, type Presence } from './certainty.ts';
import { Contents } from './contents.ts';
import { COSTLY_PAUSE_MS, type Draft, isRefusal } from './draft.ts';
import { follow } from './follow.ts';
import { NodeIdentity } from './node-identity.ts';
import { withOwner } from './owner-mark.ts';

export interface PersistentEphemeralOptions extends HeldOptions {
  /** The data of the znode. Default: empty. */
  readonly data?: Data | undefined;
  /**
   * Our identity, unique and the same after a restart: a host name, the name of a pod. By it the znode of our previous
   * process is recognized, which exists until that session times out. It is stored in the ACL; the data is not
   * affected.
   */
  readonly owner?: string | undefined;
  /** What to do with a znode of our own previous process or session. Default 'replace'. */
  readonly whenStale?: 'replace' | 'wait' | undefined;
  /** What to do with another client's znode: wait for its deletion (the default), replace it, or fail. */
  readonly whenTaken?: 'wait' | 'replace' | 'fail' | undefined;
  /** The mode of missing parents. Default 'container', as in Curator. */
  readonly parentMode?: 'persistent' | 'container' | undefined;
}

/**
 * An ephemeral znode that is recreated: after session loss, after a deletion, and in place of the one that the previous
 * process left behind.
 *
 * 1. There is at most one znode; it is deleted by `close`, or with the session of a process that dies.
 * 2. A znode of an earlier session is never taken for ours: `token` is that of a znode of the current session.
 * 3. `isPresent` is false before the service deletes the znode with the session (under the assumption about clocks of
 *    the client's `lost`), and once the event arrives that another client has deleted or replaced it.
 * 4. The znode holds the data that was `set` last, also when it is recreated.
 *
 * @example
 * await using presence = new PersistentEphemeral(client, '/services/search/a', { data: 'host1:8080', owner: 'host1' });
 * await presence.whenPresent({ timeoutMs: 30_000 });
 */
export class PersistentEphemeral implements AsyncIterable<Presence>, AsyncDisposable {
  readonly path: string;
  readonly #client: Client;
  readonly #acl: readonly Acl[];
  /** Without the mark of the owner, which belongs to the znode alone. */
  readonly #parentAcl: readonly Acl[];
  readonly #kin: NodeIdentity;
  readonly #whenStale: 'replace' | 'wait';
  readonly #whenTaken: 'wait' | 'replace' | 'fail';
  readonly #parentMode: 'persistent' | 'container';
  readonly #contents: Contents;
  readonly #certainty: Certainty;
  readonly #pulse = new Pulse();
  readonly #closing = new AbortController();
  readonly #keeping: Attempt;
  readonly #finished: Promise<void>;
  /** czxid of a rival's znode that was left alone for a while. */
  #spared: bigint | null = null;

  constructor(client: Client, path: string, options: PersistentEphemeralOptions = {}) {
    const { data = '', owner, whenStale = 'replace', whenTaken = 'wait', parentMode = 'container' } = options;
    const { acl = OPEN, marginMs } = heldSettings(options);
    this.path = path;
    this.#client = client;
    this.#contents = new Contents(path, data);
    this.#kin = new NodeIdentity(client, owner ?? null);
    this.#acl = withOwner(acl, owner ?? null);
    this.#parentAcl = acl;
    this.#whenStale = whenStale;
    this.#whenTaken = whenTaken;
    this.#parentMode = parentMode;
    this.#certainty = new Certainty(client, marginMs, () => this.#pulse.raise());
    const about = { operation: 'PersistentEphemeral', path };
    this.#keeping = new Attempt(client, { signal: this.#closing.signal }, about, { awaitsQuorum: true });
    this.#finished = this.#run();
  }

  get presence(): Presence {
    return this.#certainty.presence;
  }

  /** The znode exists and is ours, as far as can be known. */
  get isPresent(): boolean {
    return this.#certainty.isPresent;
  }

  /** The token of the existing znode; null while there is none. */
  get token(): bigint | null {
    const { presence } = this;
    return presence.isPresent && this.isPresent ? presence.token : null;
  }

  /** What the znode holds, or is to hold. */
  get data(): Data {
    return this.#contents.draft.data;
  }

  /**
   * Resolves with the token as soon as the znode exists.
   *
   * @throws NodeExistsError when another client's exists and `whenTaken` is 'fail', and what else ends it;
   *   TimeoutError, AbortedError: it keeps trying
   */
  async whenPresent(options: CallOptions = {}): Promise<bigint> {
    const about = { operation: 'whenPresent', path: this.path };
    const attempt = new Attempt(this.#client, options, about);
    return await attempt.waitFor((givenUp) => this.#certainty.whenPresent(givenUp));
  }

  /**
   * Changes the data of the znode. Resolves when it holds this data, or data that was set later.
   *
   * @throws RequestTooLargeError, QuotaExceededError, NoAuthError when the service refuses it: the znode keeps its
   *   data; TimeoutError, AbortedError: it is still written later, unless other data is set first
   */
  async set(data: Data, options: CallOptions = {}): Promise<void> {
    const draft = this.#contents.set(data);
    this.#pulse.raise();
    const about = { operation: 'set', path: this.path };
    const attempt = new Attempt(this.#client, options, about, { isUnderWay: true });
    await attempt.waitFor((givenUp) => this.#contents.written(draft, givenUp));
    this.#contents.check(draft);
  }

  /**
   * The current presence, and each change. Loops end when it or the client is closed; they throw what ends it
   * otherwise.
   */
  [Symbol.asyncIterator](): AsyncIterator<Presence, undefined> {
    return this.#certainty.presences[Symbol.asyncIterator]();
  }

  /**
   * Deletes the znode for good. Resolves when it is gone; without a connection at once, and it is deleted with the next
   * one, if the session lives that long. Never rejects: if the service refuses the deletion, the znode is deleted with
   * the session.
   */
  async close(): Promise<void> {
    this.#end(new AbortedError({ operation: 'PersistentEphemeral', path: this.path, detail: 'it was closed' }));
    await orDisconnected(this.#client, this.#finished);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /* ------------------------------------------------------------------------------------------------ the loop ---- */

  async #run(): Promise<void> {
    const client = this.#client;
    const { signal } = this.#closing;
    const states = client.onState(({ state }) => {
      if (state === 'lost' || state === 'closed' || state === 'auth-failed') this.#certainty.absent('session-lost');
      this.#pulse.raise();
    });
    await follow(client, this.path, {
      recursive: false,
      signal,
      onArmed: () => this.#pulse.raise(),
      onEvent: (event) => this.#onEvent(event),
      pulse: this.#pulse,
      look: () => this.#keeping.through(() => this.#repair()),
      onFailure: (error) => this.#end(error),
    });
    states[Symbol.dispose]();
    // If it failed because another client's znode exists, it has created nothing.
    const about = { operation: 'close', path: this.path };
    const withdrawing = new Attempt(client, {}, about, { awaitsQuorum: true });
    await withdrawing.through(() => this.#withdraw()).catch(() => {});
  }

  /** The znode has, or may have, changed. */
  #onEvent(event: WatchStreamEvent): void {
    const { presence } = this;
    // After its creation there is at most one deletion. The look that follows may take as long as a lost connection.
    const isGone = event.type === 'deleted' && presence.isPresent && (event.zxid ?? 0n) > presence.token;
    if (isGone) this.#certainty.absent('deleted');
    this.#pulse.raise();
  }

  /** Reads the znode, and does what is needed until it is there or has to be waited for. */
  async #repair(): Promise<void> {
    const client = this.#client;
    const { signal } = this.#closing;
    if (this.#contents.draft.isCostly) await this.#keeping.pause(COSTLY_PAUSE_MS);
    for (;;) {
      const lost = client.lostSignal;
      const stat = await client.exists(this.path, { read: 'linearizable', signal });
      if (stat === null) {
        if (this.presence.isPresent) this.#certainty.absent('deleted');
        if (await this.#create(lost)) return;
      } else if (stat.ephemeralOwner === client.session?.id) {
        await this.#keep(stat, lost);
        return;
      } else if (!(await this.#meet(stat))) return;
    }
  }

  /** @returns false when another client was faster */
  async #create(lost: AbortSignal): Promise<boolean> {
    const { draft } = this.#contents;
    this.#kin.noteSession();
    try {
      const { stat } = await this.#client.createParents(this.path, draft.data, {
        mode: 'ephemeral',
        acl: this.#acl,
        parentAcl: this.#parentAcl,
        parentMode: this.#parentMode,
        signal: this.#closing.signal,
      });
      this.#kin.noteZnode(stat);
      this.#contents.note(stat.czxid, draft);
      this.#present(stat, lost);
      return this.#contents.draft === draft;
    } catch (error) {
      this.#kin.noteSession();
      if (error instanceof NodeExistsError || this.#forget(draft, error)) return false;
      throw error;
    }
  }

  /**
   * Data that cannot be written does not end it.
   *
   * @returns whether the data was discarded, with other data left to hold
   */
  #forget(draft: Draft, error: unknown): boolean {
    const cause = this.#contents.failed(draft, error);
    return isRefusal(cause) && this.#contents.refuse(draft, cause);
  }

  /** It is ours: created just now, or before the connection was lost, or by an earlier holder of this session. */
  async #keep(stat: Stat, lost: AbortSignal): Promise<void> {
    this.#kin.noteSession();
    const contents = this.#contents;
    if (contents.isHeldBy(stat.czxid)) return this.#present(stat, lost);
    const { draft } = contents;
    try {
      const { version } = stat;
      // Should another client have replaced it meanwhile, the version mostly keeps us from writing to it.
      const changed = await this.#client.set(this.path, draft.data, { version, signal: this.#closing.signal });
      if (changed.czxid !== stat.czxid) return this.#pulse.raise();
      contents.note(stat.czxid, draft);
      this.#present(changed, lost);
      if (contents.draft !== draft) this.#pulse.raise();
    } catch (error) {
      if (this.#forget(draft, error)) return this.#pulse.raise();
      // The ACL may let no client write, us included: then its data is that of the creation, perhaps the wanted one.
      if (error instanceof NoAuthError && (await this.#hasData(stat, draft.data))) {
        contents.note(stat.czxid, draft);
        return this.#present(stat, lost);
      }
      if (!PASSES.some((kind) => error instanceof kind)) throw error;
      this.#pulse.raise();
    }
  }

  /** Whether the znode still exists and holds the wanted data. */
  async #hasData({ czxid }: Stat, wanted: Data): Promise<boolean> {
    const due = typeof wanted === 'string' ? text.encode(wanted) : wanted;
    try {
      const { data, stat } = await this.#client.get(this.path, { codec: nullableBytes, signal: this.#closing.signal });
      return stat.czxid === czxid && isSame(data, due);
    } catch (error) {
      if (error instanceof NoNodeError || error instanceof NoAuthError) return false;
      throw error;
    }
  }

  /**
   * Handles the znode of another session.
   *
   * @returns false when it has to be waited for
   */
  async #meet(stat: Stat): Promise<boolean> {
    const detail = stat.isEphemeral ? 'another session has made it' : 'it is not ephemeral, and so it does not go away';
    const taken = (): Error => new NodeExistsError({ operation: 'PersistentEphemeral', path: this.path, detail });
    // Ours is gone, whatever becomes of this one, and however long that takes.
    if (this.presence.isPresent) this.#certainty.absent('deleted');
    if (!stat.isEphemeral) throw taken();
    const isStale = await this.#kin.hasLeft(this.path, stat, this.#closing.signal);
    if (isStale === null) return true;
    switch (isStale ? this.#whenStale : this.#whenTaken) {
      case 'wait':
        this.#certainty.absent(isStale ? 'stale' : 'taken');
        return false;
      case 'fail':
        throw taken();
      default:
        if (this.#isRival(stat) && this.#spared !== stat.czxid) {
          this.#spared = stat.czxid;
          await this.#keeping.pause(RIVAL_PAUSE_MS);
        } else await this.#replace(stat);
        return true;
    }
  }

  /**
   * Whether it was created after ours, by a client that is alive at the same time: two that want the same path would
   * replace each other's znodes at the speed of the service.
   */
  #isRival(stat: Stat): boolean {
    const own = this.#contents.czxid;
    return own !== null && stat.czxid > own && !this.#kin.hasMade(stat);
  }

  /** In one transaction, so that no client comes in between. The next look shows whether it succeeded. */
  async #replace(stat: Stat): Promise<void> {
    this.#kin.noteSession();
    const { draft } = this.#contents;
    try {
      const [, created] = await this.#client
        .transaction()
        .delete(this.path, { version: stat.version })
        .create(this.path, draft.data, { mode: 'ephemeral', acl: this.#acl })
        .commit({ signal: this.#closing.signal });
      // Servers that do not send the Stat here get the data once more.
      if (created.stat !== null) this.#contents.note(created.stat.czxid, draft);
    } catch (error) {
      const cause = error instanceof TransactionError ? error.cause : error;
      if (this.#forget(draft, cause)) return;
      if (!(error instanceof TransactionError) || !PASSES.some((kind) => cause instanceof kind)) throw error;
    } finally {
      // It may have waited for the next session.
      this.#kin.noteSession();
    }
  }

  async #withdraw(): Promise<void> {
    if (this.#kin.hasMadeNothing) return;
    const client = this.#client;
    for (;;) {
      const stat = await client.exists(this.path, { read: 'linearizable' });
      if (stat === null || !this.#kin.hasMade(stat)) return;
      try {
        await client.delete(this.path, { version: stat.version });
        return;
      } catch (error) {
        if (!PASSES.some((kind) => error instanceof kind)) throw error;
      }
    }
  }

  #present(stat: Stat, lost: AbortSignal): void {
    this.#contents.confirm();
    this.#certainty.present(stat.czxid, lost);
  }

  /** Stops all reads and writes. */
  #end(reason: Error): void {
    const isGood = reason instanceof AbortedError || reason instanceof ClosedError;
    this.#certainty.end(isGood ? null : reason, reason);
    this.#contents.end(isGood ? null : reason, reason);
    this.#closing.abort();
    this.#pulse.raise();
  }
}

/** Milliseconds. */
const RIVAL_PAUSE_MS = 1000;

/** Errors of a read, or of the write after it, that are caused by concurrent changes: look again. */
const PASSES = [NoNodeError, NodeExistsError, BadVersionError] as const;
