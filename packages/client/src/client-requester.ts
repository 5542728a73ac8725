import { AddWatchMode, OpCode, type Request } from '@meerkat/protocol';
import { call, callRead } from './calls.ts';
import { addChroot, addChrootSequential, removeChroot } from './chroot.ts';
import type { ClientSession } from './client-session.ts';
import type { Clock } from './clock.ts';
import { isRepeatable } from './machine/replies.ts';
import { isConnectedState } from './machine/state.ts';
import type { WatchListener } from './machine/watch-listener.ts';
import type { About, CallOptions, ReadOptions, WatchHandle } from './requester.ts';
import { waitForState } from './states.ts';
import type { WatchPorts } from './watch-ports.ts';

/** Requests and watches of one client: paths below its chroot, on the session that it shares. */
export class ClientRequester implements WatchPorts {
  readonly session: ClientSession;
  /** '' for none; otherwise a path without a trailing slash. */
  readonly chroot: string;

  constructor(session: ClientSession, chroot: string) {
    this.session = session;
    this.chroot = chroot;
  }

  get sessionId(): bigint {
    return this.session.session.identity?.id ?? 0n;
  }

  get clock(): Clock {
    return this.session.clock;
  }

  absolute(path: string, operation: string): string {
    return addChroot(this.chroot, path, operation);
  }

  /** Also accepts `/queue/`, to which the server appends only a number. */
  absoluteSequential(path: string, operation: string): string {
    return addChrootSequential(this.chroot, path, operation);
  }

  relative(path: string): string {
    return removeChroot(this.chroot, path);
  }

  request<T>(
    request: Request,
    options: ReadOptions | undefined,
    about: About,
    listener: WatchListener | null = null,
  ): Promise<T> {
    const plan = { request, about, listener };
    if (!isRepeatable(request)) return call(this.session, plan, options);
    return callRead(this.session, plan, 'path' in request ? request.path : '/', options);
  }

  async addWatch(
    path: string,
    isRecursive: boolean,
    listener: WatchListener,
    options: CallOptions | undefined,
    about: About,
  ): Promise<WatchHandle> {
    const mode = isRecursive ? AddWatchMode.persistentRecursive : AddWatchMode.persistent;
    await call(this.session, { request: { op: OpCode.addWatch, path, mode }, about, listener }, options);
    const kind = isRecursive ? 'recursive' : 'persistent';
    return {
      close: () => new Promise((resolve) => this.session.session.calls.removeWatch(kind, path, listener, resolve)),
    };
  }

  whenConnected(options: CallOptions): Promise<void> {
    return waitForState(this.session, isConnectedState, 'watch', options);
  }

  forgetOneShots(path: string, listener: WatchListener): void {
    this.session.session.watches.forgetOneShots(path, listener);
  }
}
