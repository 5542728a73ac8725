import type { Clock, Disk, Network, ServerView, Trace } from '@meerkat/core';
import type { ServerError } from './exit-codes.ts';
import type { Logger } from './logger.ts';
import type { HostedDisk } from './node/hosted-disk.ts';

/** A server that serves clients or, as a member of an ensemble, does so whenever it has a leader. */
export interface RunningServer {
  /** Where clients connect; of a server that has a port for TLS alone, that one. */
  readonly address: { readonly host: string; readonly port: number };
  /** Where clients connect with TLS (`secureClientPort`); null without such a port. */
  readonly secureAddress: { readonly host: string; readonly port: number } | null;
  readonly view: ServerView;
  /** Resolves once clients are served for the first time; rejects when the server ends before that. */
  readonly serving: Promise<void>;
  /** Finishes what is in flight, syncs, closes connections and files. A paused server is resumed for it. */
  stop(): Promise<void>;
  /**
   * Ends this server as kill -9 ends a process: nothing in flight is finished or answered, connections break, files are
   * closed as they are. Resolves once all its activity has ceased.
   */
  kill(): Promise<void>;
  /**
   * Freezes this server as SIGSTOP freezes a process, without stopping the process: connections are accepted and bytes
   * taken by the kernel, but nothing is read, answered, written to disk or expired until `resume`. Replies that the kernel
   * did not take before still leave while the client reads them.
   */
  pause(): void;
  /** Continues after `pause`; the time in between has passed. */
  resume(): void;
  /**
   * Expires a session now, as if its client had been silent for its timeout.
   *
   * @returns false when there is no such session; otherwise once its closeSession is committed, its ephemerals are gone,
   *     and the events and the end of its connection are on their way. While the server is paused that is after `resume`
   */
  expireSession(id: bigint): Promise<boolean>;
  /** Resolves with the reason when the server has failed and stopped. Stays pending otherwise. */
  readonly failed: Promise<ServerError>;
}

export interface StartOptions {
  readonly logger?: Logger;
  /** In place of the clocks of this machine. All servers of an ensemble in one process share it. */
  readonly clock?: Clock;
  /** Sees every event of the core besides the log and the metrics. */
  readonly trace?: Trace;
  /** In place of the files of this machine. The directories of the configuration are names on it then. */
  readonly disk?: HostedDisk;
  /**
   * Puts something between the core and its files: a slow disk, one that hangs, one that fails. `deliver` as below. What takes
   * place besides the effects that reach the files is over when the process ends, not before.
   */
  readonly decorateDisk?: (disk: Disk, deliver: (event: () => void) => void) => Disk;
  /**
   * Puts something between the core and its streams to other servers. `deliver` gives the core an event as the host of a
   * port does: in a turn of its own, after `resume` while the server is paused, never once it has ended. It may run the
   * event at once, so it is not called from within an effect.
   */
  readonly decorateNetwork?: (network: Network, deliver: (event: () => void) => void) => Network;
  /** Aborts the start, once what is in flight has finished. */
  readonly signal?: AbortSignal;
}
