import { type Children, type Client, joinPath, NoAuthError, NoNodeError, type WatchStream } from '@meerkat/client';
import type { IndexState, SearchResult } from '../api/messages.ts';

/**
 * The paths and sizes of a whole tree, for search, sizes and lines.
 *
 * 1. It walks the tree once, a limited number of requests at a time, while a recursive watch reports changes. The watch
 *    is armed first and its events are processed before a reply is used, so that no change is missed.
 * 2. After a gap of the watch it walks again.
 * 3. Where servers have no such watches, it is as old as its walk, and walks again when used after a minute.
 * 4. It holds at most `max` znodes, and reports when there are more.
 */
export class TreeIndex {
  readonly #client: Client;
  readonly #max: number;
  /** Bytes of data by path. */
  #sizes: Map<string, number> = new Map();
  #bytes = 0;
  #refused = 0;
  #isCut = false;
  #isComplete = false;
  #isStopped = false;
  #stream: WatchStream | null = null;
  #isLive = false;
  /** −1 during a walk, and while its watch is being armed. */
  #walkedMs = 0;
  #walking: Promise<void> | null = null;
  /** Events were dropped during the walk. */
  #isGapped = false;
  /** Changed since they were read. */
  readonly #stale: Set<string> = new Set();
  #refresh: Promise<void> | null = null;
  /** The text for search; null when it has to be rebuilt. */
  #text: SearchText | null = null;
  #textMadeMs = 0;
  /** Number of changes of names. */
  #revision = 0;

  constructor(client: Client, max: number) {
    this.#client = client;
    this.#max = max;
    this.#begin();
  }

  /** Changes when znodes are created or deleted. */
  get revision(): number {
    return this.#revision;
  }

  get state(): IndexState {
    const missing = [
      ...(this.#isCut ? [`the tree has more than ${this.#max} znodes: the others are left out`] : []),
      ...(this.#refused > 0 ? [`${this.#refused} znodes may not be read`] : []),
    ];
    return {
      znodes: this.#sizes.size,
      bytes: this.#bytes,
      isComplete: this.#isComplete,
      isLive: this.#isLive,
      missing: missing.length === 0 ? null : missing.join('; '),
    };
  }

  /** Bytes of data by path. */
  get sizes(): ReadonlyMap<string, number> {
    this.#walkIfOld();
    return this.#sizes;
  }

  /** Resolves when the current walk is complete. */
  async whenWalked(): Promise<void> {
    await this.#walking;
  }

  /** Paths that contain the text, case-insensitive: the shortest first, at most `listMax`. */
  search(text: string, listMax: number): SearchResult {
    this.#walkIfOld();
    const { paths, found } = this.#searchText().find(text, listMax);
    return { paths, found, index: this.state };
  }

  stop(): void {
    this.#isStopped = true;
    void this.#stream?.close();
    this.#sizes = new Map();
    this.#text = null;
  }

  #begin(): void {
    this.#walking = this.#run().catch(() => {
      // The connection is gone: the index is unchanged, and walks again when used.
      this.#isLive = false;
      this.#walkedMs = 0;
    });
  }

  #walkIfOld(): void {
    if (this.#isLive || this.#walkedMs === -1 || Date.now() - this.#walkedMs < OLD_MS || this.#isStopped) return;
    this.#begin();
  }

  async #run(): Promise<void> {
    this.#walkedMs = -1;
    void this.#stream?.close();
    const stream = this.#client.watch('/', { recursive: true, bufferMax: EVENTS_MAX });
    this.#stream = stream;
    // One-shot watches of old servers are set per znode: unsuitable for following a tree.
    const isArmed = await stream.ready.then(
      () => stream.mode !== null && !/one-shot/.test(stream.mode),
      () => false,
    );
    if (!isArmed) await stream.close();
    do {
      this.#isGapped = false;
      await this.#walk(isArmed ? stream : null);
    } while (this.#isGapped && !this.#isStopped && this.#stream === stream);
    this.#walkedMs = Date.now();
    this.#isLive = isArmed;
    if (isArmed) void this.#follow(stream);
  }

  async #walk(stream: WatchStream | null): Promise<void> {
    this.#sizes = new Map();
    this.#bytes = 0;
    this.#refused = 0;
    this.#isCut = false;
    this.#isComplete = false;
    const queue = ['/'];
    let inFlight = 0;
    await new Promise<void>((resolve, reject) => {
      const nextStep = (): void => {
        while (inFlight < IN_FLIGHT_MAX && queue.length > 0 && !this.#isStopped) {
          inFlight++;
          this.#visit(queue.pop()!, queue, stream).then(landed, reject);
        }
        if (inFlight === 0) resolve();
      };
      const landed = (): void => {
        inFlight--;
        nextStep();
      };
      nextStep();
    });
    this.#isComplete = true;
    this.#revision++;
  }

  /** Adds a znode, and its children to the queue as far as there is room. */
  async #visit(path: string, queue: string[], stream: WatchStream | null): Promise<void> {
    const found = await this.#childrenOf(path);
    if (found === null) return;
    if (stream !== null && this.#takeEvents(stream)) this.#isGapped = true;
    this.#add(path, found.stat.dataLength);
    const room = Math.max(0, this.#max - this.#sizes.size - queue.length);
    if (found.children.length > room) this.#isCut = true;
    for (const name of found.children.slice(0, room)) queue.push(joinPath(path, name));
  }

  /** @returns null when it is deleted, or may not be read: then it is added without its size */
  async #childrenOf(path: string): Promise<Children | null> {
    try {
      return await this.#client.children(path, { timeoutMs: REPLY_MS });
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      if (!(error instanceof NoAuthError)) throw error;
      this.#add(path, 0);
      this.#refused++;
      return null;
    }
  }

  async #follow(stream: WatchStream): Promise<void> {
    while (!stream.isOver && !this.#isStopped && this.#stream === stream) {
      await stream.arrival();
      if (this.#takeEvents(stream)) {
        this.#isLive = false;
        this.#begin();
        return;
      }
      // Several changes at once cost one turn.
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS).unref());
    }
    if (this.#stream === stream) this.#isLive = false;
  }

  /** @returns whether changes may be missing */
  #takeEvents(stream: WatchStream): boolean {
    for (let event = stream.take(); event !== null; event = stream.take()) {
      if (event.type === 'gap') return true;
      if (event.type === 'deleted') this.#remove(event.path);
      else if (event.type !== 'children') this.#refreshSoon(event.path);
    }
    return false;
  }

  #refreshSoon(path: string): void {
    if (!this.#sizes.has(path)) this.#add(path, 0);
    this.#stale.add(path);
    this.#refresh ??= this.#readStale().finally(() => {
      this.#refresh = null;
    });
  }

  async #readStale(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS).unref());
    while (this.#stale.size > 0 && !this.#isStopped) {
      const paths = [...this.#stale].slice(0, IN_FLIGHT_MAX);
      for (const path of paths) this.#stale.delete(path);
      await Promise.all(
        paths.map(async (path) => {
          const stat = await this.#client.exists(path, { timeoutMs: REPLY_MS }).catch(() => null);
          if (stat !== null && this.#sizes.has(path)) this.#add(path, stat.dataLength);
        }),
      );
    }
  }

  #add(path: string, bytes: number): void {
    const known = this.#sizes.get(path);
    if (known === undefined) {
      if (this.#sizes.size >= this.#max) {
        this.#isCut = true;
        return;
      }
      this.#revision++;
    }
    this.#bytes += bytes - (known ?? 0);
    this.#sizes.set(path, bytes);
  }

  #remove(path: string): void {
    const known = this.#sizes.get(path);
    if (known === undefined) return;
    this.#bytes -= known;
    this.#sizes.delete(path);
    this.#stale.delete(path);
    this.#revision++;
  }

  #searchText(): SearchText {
    const isOld = this.#text?.revision !== this.#revision;
    // Rebuilding costs a tenth of a second for a million znodes: too much for every keystroke in a busy tree.
    const isDue = Date.now() - this.#textMadeMs > (this.#sizes.size > 50_000 ? TEXT_MS : 0);
    // A text built during the walk is incomplete, and nothing else would cause a rebuild after the walk.
    const isPart = this.#isComplete && this.#text?.isComplete === false;
    if (this.#text === null || isPart || (isOld && isDue)) {
      this.#text = new SearchText([...this.#sizes.keys()], this.#revision, this.#isComplete);
      this.#textMadeMs = Date.now();
    }
    return this.#text;
  }
}

/** All paths as one text, which is searched faster than many small ones. */
class SearchText {
  readonly revision: number;
  /** False when the walk was still in progress. */
  readonly isComplete: boolean;
  readonly #paths: readonly string[];
  readonly #text: string;
  /** The start of each path in the text. */
  readonly #starts: Uint32Array;

  constructor(paths: readonly string[], revision: number, isComplete: boolean) {
    this.revision = revision;
    this.isComplete = isComplete;
    this.#paths = paths;
    const lower = paths.map((path) => foldCase(path));
    this.#text = lower.join('\n');
    this.#starts = new Uint32Array(paths.length);
    let start = 0;
    for (const [i, path] of lower.entries()) {
      this.#starts[i] = start;
      start += path.length + 1;
    }
  }

  find(wanted: string, listMax: number): { readonly paths: readonly string[]; readonly found: number } {
    const text = foldCase(wanted);
    const hits: string[] = [];
    let found = 0;
    if (text === '' || text.includes('\n')) return { paths: [], found };
    let at = this.#text.indexOf(text);
    while (at >= 0) {
      const i = this.#indexAt(at);
      found++;
      if (hits.length < HITS_MAX) hits.push(this.#paths[i]!);
      const next = this.#starts[i + 1];
      at = next === undefined ? -1 : this.#text.indexOf(text, next);
    }
    hits.sort((a, b) => rank(a, text) - rank(b, text) || a.length - b.length || (a < b ? -1 : 1));
    return { paths: hits.slice(0, listMax), found };
  }

  #indexAt(at: number): number {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#starts[middle]! <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** A match at the end of a path is more often wanted than one further up. */
function rank(path: string, text: string): number {
  const name = foldCase(path.slice(path.lastIndexOf('/') + 1));
  return name === text ? 0 : name.startsWith(text) ? 1 : name.includes(text) ? 2 : 3;
}

/** Lower case of the same length, so that indexes stay valid. */
function foldCase(text: string): string {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

const IN_FLIGHT_MAX = 200;
const REPLY_MS = 60_000;
const EVENTS_MAX = 200_000;
const OLD_MS = 60_000;
const PAUSE_MS = 50;
const TEXT_MS = 2000;
const HITS_MAX = 5000;
