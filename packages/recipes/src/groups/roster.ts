import {
  AbortedError,
  type CallOptions,
  type Client,
  ClosedError,
  joinPath,
  NoAuthError,
  NoNodeError,
  onAbort,
  type Stat,
  type WatchStreamEvent,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { Latest, Pulse } from '../kernel/latest.ts';
import { follow } from './follow.ts';

/** A child of the znode that is followed. */
export interface RosterEntry {
  readonly name: string;
  /** Empty where `withData` is false. */
  readonly data: Uint8Array;
  /** null where `withData` is false. */
  readonly stat: Stat | null;
}

export interface RosterOptions {
  /** Which children to include. Default: all. */
  readonly accepts?: ((name: string) => boolean) | undefined;
  /** Whether the children are read, or only listed. Default true. */
  readonly withData?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The children by name, at one moment. A new map for each change. */
export type RosterEntries = ReadonlyMap<string, RosterEntry>;

/**
 * The children of a znode and their data, kept up to date until it is closed. The znode need not exist.
 *
 * One recursive watch reports what changed, and only that is read; after a lost connection all children are listed and
 * read, and an unchanged entry stays the same object. While disconnected, the entries are the last ones known.
 */
export class Roster {
  readonly path: string;
  /** Ending a loop over it closes the roster. */
  readonly entries: Latest<RosterEntries>;
  readonly #client: Client;
  readonly #accepts: (name: string) => boolean;
  readonly #withData: boolean;
  readonly #closing = new AbortController();
  readonly #pulse = new Pulse();
  /** Children that may have changed since they were read; null: any of them, or the list. */
  #dirty: Set<string> | null = null;

  constructor(client: Client, path: string, options: RosterOptions = {}) {
    const { accepts = () => true, withData = true, signal } = options;
    this.path = path;
    this.#client = client;
    this.#accepts = accepts;
    this.#withData = withData;
    this.entries = new Latest(() => this.close());
    const release = onAbort(signal, () => this.close());
    onAbort(this.#closing.signal, release);
    void this.#run();
  }

  /** Resolves with the entries once they are known. */
  async ready(options: CallOptions = {}): Promise<RosterEntries> {
    const about = { operation: 'ready', path: this.path };
    const attempt = new Attempt(this.#client, options, about);
    return attempt.waitFor((givenUp) => this.entries.when(() => true, givenUp));
  }

  close(): void {
    this.#end(new AbortedError({ operation: 'observe', path: this.path, detail: 'it was closed' }));
  }

  async #run(): Promise<void> {
    const client = this.#client;
    const { signal } = this.#closing;
    const reading = new Attempt(client, { signal }, { operation: 'observe', path: this.path }, { awaitsQuorum: true });
    await follow(client, this.path, {
      recursive: this.#withData,
      signal,
      onArmed: () => this.#note(null),
      onEvent: (event) => this.#onEvent(event),
      pulse: this.#pulse,
      look: async () => {
        const dirty = this.#dirty;
        this.#dirty = new Set();
        const entries = await reading.through(() => (dirty === null ? this.#list() : this.#refresh(dirty)));
        if (entries !== this.entries.current) this.entries.publish(entries);
      },
      onFailure: (error) => this.#end(error),
    });
  }

  #onEvent(event: WatchStreamEvent): void {
    const prefix = this.path === '/' ? '/' : `${this.path}/`;
    const path = event.type === 'gap' ? null : event.path;
    if (path === null || !path.startsWith(prefix)) this.#note(null);
    else if (!path.includes('/', prefix.length)) this.#note(path.slice(prefix.length));
  }

  /** A child may have changed; null: any of them, or the list. */
  #note(name: string | null): void {
    if (name === null) this.#dirty = null;
    else this.#dirty?.add(name);
    this.#pulse.raise();
  }

  /** Lists and reads everything again. */
  async #list(): Promise<RosterEntries> {
    let names: readonly string[] = [];
    try {
      const { children } = await this.#client.children(this.path, { signal: this.#closing.signal });
      names = children.filter(this.#accepts);
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
    }
    const read = await Promise.all(names.map((name) => this.#read(name)));
    return this.#isSame(read) ? (this.entries.current ?? new Map()) : toMap(read);
  }

  async #refresh(dirty: ReadonlySet<string>): Promise<RosterEntries> {
    const names = [...dirty].filter(this.#accepts);
    const read = await Promise.all(names.map((name) => this.#read(name)));
    const entries = new Map(this.entries.current);
    let isChanged = false;
    for (const [i, name] of names.entries()) {
      const entry = read[i] ?? null;
      const known = entries.get(name);
      if (entry === known || (entry === null && known === undefined)) continue;
      isChanged = true;
      if (entry === null) entries.delete(name);
      else entries.set(name, entry);
    }
    return isChanged ? entries : (this.entries.current ?? entries);
  }

  /**
   * null when it is gone or may not be read: the client would get no events of its changes, not even of its deletion,
   * and one such child must not hide the others. Returns the known entry when nothing has changed.
   */
  async #read(name: string): Promise<RosterEntry | null> {
    const known = this.entries.current?.get(name);
    if (!this.#withData) return known ?? { name, data: EMPTY, stat: null };
    try {
      const { data, stat } = await this.#client.get(joinPath(this.path, name), { signal: this.#closing.signal });
      return known?.stat?.mzxid === stat.mzxid ? known : { name, data, stat };
    } catch (error) {
      if (error instanceof NoNodeError || error instanceof NoAuthError) return null;
      throw error;
    }
  }

  #isSame(read: readonly (RosterEntry | null)[]): boolean {
    const known = this.entries.current;
    if (known === null) return false;
    const present = read.filter((entry) => entry !== null);
    return present.length === known.size && present.every((entry) => known.get(entry.name) === entry);
  }

  #end(reason: Error): void {
    this.entries.end(reason instanceof AbortedError || reason instanceof ClosedError ? null : reason, reason);
    this.#closing.abort();
    this.#pulse.raise();
  }
}

const EMPTY = new Uint8Array();

function toMap(entries: readonly (RosterEntry | null)[]): RosterEntries {
  return new Map(entries.flatMap((entry) => (entry === null ? [] : [[entry.name, entry] as const])));
}
