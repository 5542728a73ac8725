import type { Client, WatchEvent } from '@meerkat/client';
import type { ClusterOptions } from '@meerkat/console';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import type { ConnectionSettings } from '../connection/connection-settings.ts';
import type { Progress } from '../output/progress.ts';
import type { Report } from '../output/report.ts';
import type { Io } from './io.ts';

/**
 * What a command works with: in a process of its own or as a line of the shell.
 *
 * Sessions are opened when one is first needed, and closed by the host after the command.
 */
export interface Context {
  readonly io: Io;
  readonly report: Report;
  /** Aborted by Ctrl-C, SIGTERM, or when the reader of the output is gone. Passed to every request. */
  readonly signal: AbortSignal;
  /** True for a line of the shell: watches may stay behind, and the session continues. */
  readonly isShell: boolean;
  /** Timeout of one request in milliseconds; undefined: no limit. */
  readonly timeoutMs: number | undefined;
  /** For every request: `client.get(path, context.call)`. */
  readonly call: { readonly signal: AbortSignal; readonly timeoutMs: number | undefined };
  /** The servers of this run's service, each to be asked by itself; not in the shell. */
  servers(): Promise<readonly MonitoredServer[]>;
  /** How the session of this run would be opened; not in the shell. */
  settings(): Promise<ConnectionSettings>;
  /** This run's service and those of other profiles, for the console; not in the shell. */
  services(profiles: readonly string[]): Promise<readonly ClusterOptions[]>;
  /** The session of this run. */
  connect(): Promise<Client>;
  /** A znode of this service or another one; see `connection/location.ts`. */
  locate(text: string): Promise<Located>;
  /** The absolute path of what was typed: in the shell, relative ones lie below the current znode. */
  resolve(path: string): string;
  /** A note for the person, on standard error; nothing with --quiet. */
  note(text: string): void;
  /** In the shell: prints the event when it comes. Elsewhere the command has ended by then. */
  leaveWatch(changed: Promise<WatchEvent>): void;
  /** Begins a progress line. */
  progress(): Progress;
}

export interface Located {
  readonly client: Client;
  readonly path: string;
  /** As it is named to people: with the service, unless it is that of this run. */
  readonly shown: string;
}
