import type { Client, WatchEvent, WatchEventType, WatchStream } from '@meerkat/client';
import type { Paint } from '../output/paint.ts';
import { hex } from '../output/stat-columns.ts';

/** A lasting watch of the shell. */
export interface LastingWatch {
  readonly path: string;
  readonly isRecursive: boolean;
  readonly stream: WatchStream;
}

/** The watches left by commands of the shell, and their output. */
export class WatchList {
  readonly #notify: (text: string) => void;
  readonly #paint: Paint;
  #lasting: LastingWatch[] = [];
  /** `printwatches`. */
  isPrinting = true;

  /** @param notify prints a line of text; may be called at any time */
  constructor(paint: Paint, notify: (text: string) => void) {
    this.#paint = paint;
    this.#notify = notify;
  }

  get lasting(): readonly LastingWatch[] {
    return this.#lasting;
  }

  /** A one-shot watch. */
  leave(changed: Promise<WatchEvent>): void {
    // It rejects when the watch is removed or the session closed, which is reported there.
    changed.then((event) => this.#print(event)).catch(() => {});
  }

  /** @returns once the watch is set; the same watch twice is one */
  async add(client: Client, path: string, isRecursive: boolean): Promise<void> {
    if (this.#find(path, isRecursive) !== null) return;
    const stream = client.watch(path, { recursive: isRecursive });
    await stream.ready;
    const watch: LastingWatch = { path, isRecursive, stream };
    this.#lasting.push(watch);
    void this.#follow(watch);
  }

  /** Ends lasting watches on a path. @returns how many there were */
  async end(path: string, isMeant: (watch: LastingWatch) => boolean): Promise<number> {
    const meant = this.#lasting.filter((watch) => watch.path === path && isMeant(watch));
    await Promise.all(meant.map((watch) => watch.stream.close()));
    return meant.length;
  }

  #find(path: string, isRecursive: boolean): LastingWatch | null {
    return this.#lasting.find((watch) => watch.path === path && watch.isRecursive === isRecursive) ?? null;
  }

  async #follow(watch: LastingWatch): Promise<void> {
    const { path, stream } = watch;
    try {
      for await (const event of stream) {
        if (event.type !== 'gap') this.#print(event);
        else if (this.isPrinting) {
          this.#notify(
            this.#paint.notable(`the watch on ${path} is set again; changes in between may not have been reported`),
          );
        }
      }
    } catch {
      // The credentials were refused, which ends the session and is reported with it.
    } finally {
      this.#lasting = this.#lasting.filter((other) => other !== watch);
    }
  }

  #print(event: WatchEvent): void {
    if (this.isPrinting) this.#notify(this.#paint.notable(describeEvent(event)));
  }
}

/** As zkCli prints it, on one line. */
export function describeEvent({ type, path, zxid }: WatchEvent): string {
  const when = zxid === null ? '' : ` zxid:${hex(zxid)}`;
  return `WATCHER:: WatchedEvent state:SyncConnected type:${EVENT_NAMES[type]} path:${path}${when}`;
}

const EVENT_NAMES: Readonly<Record<WatchEventType, string>> = {
  created: 'NodeCreated',
  deleted: 'NodeDeleted',
  changed: 'NodeDataChanged',
  children: 'NodeChildrenChanged',
};
