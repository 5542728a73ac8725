import { withAddWatch } from './add-watch-support.ts';
import { type Deferred, makeQuietDeferred } from './deferred.ts';
import { AbortedError, UnimplementedError } from './errors.ts';
import type { WatchEnd, WatchEvent, WatchListener } from './machine/watch-listener.ts';
import { type RelativePath, relativeEvent } from './one-shot.ts';
import { OneShotTree } from './one-shot-tree.ts';
import type { About, WatchHandle } from './requester.ts';
import { RetryGate } from './retry-gate.ts';
import { makeEndError } from './watch-end.ts';
import type { WatchPorts } from './watch-ports.ts';
import type { GapReason, WatchSink } from './watch-sink.ts';

/** How changes are detected: by one persistent watch on the server, or by rearmed one-shot watches. */
export type WatchMode = 'persistent' | 'one-shot';

/**
 * A watch that stays until it is closed: a persistent one where the service supports it (3.6 and newer), otherwise
 * one-shot watches that are rearmed. Its sink is not called after `close`.
 */
export class WatchSource implements WatchListener, WatchSink {
  /** Armed. Rejects when that is not possible, or `close` came first; the rejection need not be handled. */
  readonly ready: Promise<void>;
  readonly #ports: WatchPorts;
  readonly #isRecursive: boolean;
  readonly #sink: WatchSink;
  readonly #about: About;
  readonly #relative: RelativePath;
  readonly #ready: Deferred<void> = makeQuietDeferred();
  /** Cancels arming; null once that is over. */
  #arming: AbortController | null = new AbortController();
  #mode: WatchMode | null = null;
  #isOver = false;
  #handle: WatchHandle | null = null;
  #tree: OneShotTree | null = null;

  /**
   * @param path the user's path
   * @param sink receives events with paths relative to the chroot
   */
  constructor(ports: WatchPorts, path: string, isRecursive: boolean, sink: WatchSink, about: About) {
    this.#ports = ports;
    this.#isRecursive = isRecursive;
    this.#sink = sink;
    this.#about = about;
    this.#relative = (absolute) => ports.relative(absolute);
    this.ready = this.#ready.promise;
    void this.#arm(path);
  }

  /** null until it is ready. */
  get mode(): WatchMode | null {
    return this.#mode;
  }

  /** Ends it with an error. */
  fail(error: Error): void {
    if (this.#isOver) return;
    this.#stop();
    this.#ready.reject(error);
    this.#sink.onEnd(error);
  }

  /** Resolves when the server has removed the watch, or there is no connection to it. Never rejects. */
  async close(): Promise<void> {
    if (!this.#isOver) {
      const isEarly = this.#arming !== null;
      this.#stop();
      if (isEarly) this.#ready.reject(this.#endedEarly());
    }
    await this.#handle?.close();
  }

  async #arm(path: string): Promise<void> {
    const ports = this.#ports;
    try {
      const absolute = ports.absolute(path, this.#about.operation);
      const isPersistent = await withAddWatch(ports.session, () => this.#addWatch(absolute));
      if (!isPersistent && !this.#isOver) {
        this.#tree = new OneShotTree(ports, absolute, this.#isRecursive, this, this.#about);
        await this.#tree.armed;
      }
      this.#arming = null;
      this.#mode = isPersistent ? 'persistent' : 'one-shot';
      if (this.#isOver) await this.#handle?.close();
      else this.#ready.resolve();
    } catch (error) {
      this.fail(error as Error);
    }
  }

  /**
   * Retries without a limit: a connection or a session that is lost meanwhile costs time, not the watch.
   *
   * @returns false when the service has no persistent watches
   */
  async #addWatch(path: string): Promise<boolean> {
    for (;;) {
      // It was closed while another caller checked whether the service supports addWatch, or while there was no
      // connection.
      if (this.#arming === null) throw this.#endedEarly();
      const { signal } = this.#arming;
      try {
        this.#handle = await this.#ports.addWatch(path, this.#isRecursive, this, { signal }, this.#about);
        return true;
      } catch (error) {
        if (error instanceof UnimplementedError) return false;
        const gate = new RetryGate(this.#ports);
        signal.addEventListener('abort', () => gate.end(), { once: true });
        await gate.after(error);
      }
    }
  }

  #endedEarly(): Error {
    return new AbortedError({ ...this.#about, detail: 'the watch was ended before it was armed' });
  }

  #stop(): void {
    this.#isOver = true;
    this.#arming?.abort();
    this.#arming = null;
    this.#tree?.close();
  }

  /* ------------------------------------------------------------------------ what the persistent watch reports ---- */

  onWatchEvent(event: WatchEvent): void {
    if (!this.#isOver) this.#sink.onEvent(relativeEvent(this.#relative, event));
  }

  onWatchSuspended(): void {}

  onWatchRearmed(sameSession: boolean): void {
    this.onGap(sameSession ? 'reconnected' : 'new-session');
  }

  onWatchEnded(reason: WatchEnd): void {
    this.fail(makeEndError(reason, this.#about));
  }

  /* --------------------------------------------------------------- what the one-shot watches in its place tell ---- */

  onEvent(event: WatchEvent): void {
    this.onWatchEvent(event);
  }

  onGap(reason: GapReason): void {
    if (!this.#isOver) this.#sink.onGap(reason);
  }

  onEnd(error: Error): void {
    this.fail(error);
  }
}
