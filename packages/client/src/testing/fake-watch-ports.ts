import type { Request } from '@meerkat/protocol';
import { addChroot, removeChroot } from '../chroot.ts';
import { makeDeferred } from '../deferred.ts';
import { AbortedError } from '../errors.ts';
import type { WatchEnd, WatchEventType, WatchListener } from '../machine/watch-listener.ts';
import type { About, CallOptions, WatchHandle } from '../requester.ts';
import type { WatchPorts } from '../watch-ports.ts';

/** An addWatch that waits for its reply, or is armed. */
export interface FakeWatch {
  readonly path: string;
  readonly isRecursive: boolean;
  readonly listener: WatchListener;
  readonly arm: () => void;
  readonly refuse: (error: Error) => void;
  isClosed: boolean;
}

/** The interface of a session whose service is the test. */
export class FakeWatchPorts implements WatchPorts {
  readonly session: object = {};
  readonly chroot: string;
  sessionId = 1n;
  readonly watches: FakeWatch[] = [];
  /** Answers requests. */
  answer: (request: Request) => unknown = () => {
    throw new Error('no request is expected');
  };
  /** Timers that were set; the test calls them. */
  readonly timers: (() => void)[] = [];
  readonly clock = {
    schedule: (_delayMs: number, callback: () => void): (() => void) => {
      this.timers.push(callback);
      return () => undefined;
    },
  };
  /** The promise that `whenConnected` awaits. */
  connection: Promise<void> = Promise.resolve();

  constructor(chroot = '') {
    this.chroot = chroot;
  }

  /** The last requested watch. */
  get watch(): FakeWatch {
    const watch = this.watches.at(-1);
    if (watch === undefined) throw new Error('no watch was asked for');
    return watch;
  }

  fire(type: WatchEventType, path: string, zxid: bigint | null = null): void {
    for (const { listener, isClosed } of this.watches) if (!isClosed) listener.onWatchEvent({ type, path, zxid });
  }

  reconnect(sameSession = true): void {
    for (const { listener } of this.watches) listener.onWatchSuspended();
    for (const { listener } of this.watches) listener.onWatchRearmed(sameSession);
  }

  end(reason: WatchEnd): void {
    for (const { listener } of this.watches) listener.onWatchEnded(reason);
  }

  absolute(path: string, operation: string): string {
    return addChroot(this.chroot, path, operation);
  }

  relative(path: string): string {
    return removeChroot(this.chroot, path);
  }

  async request<T>(request: Request): Promise<T> {
    return (await this.answer(request)) as T;
  }

  addWatch(
    path: string,
    isRecursive: boolean,
    listener: WatchListener,
    options: CallOptions | undefined,
    about: About,
  ): Promise<WatchHandle> {
    const armed = makeDeferred<WatchHandle>();
    const handle: WatchHandle = {
      close: async () => {
        watch.isClosed = true;
      },
    };
    const arm = (): void => armed.resolve(handle);
    const watch: FakeWatch = { path, isRecursive, listener, arm, refuse: armed.reject, isClosed: false };
    this.watches.push(watch);
    options?.signal?.addEventListener('abort', () => armed.reject(new AbortedError({ ...about })));
    return armed.promise;
  }

  whenConnected(): Promise<void> {
    return this.connection;
  }

  forgetOneShots(): void {}
}
