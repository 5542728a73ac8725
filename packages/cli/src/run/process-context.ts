import assert from 'node:assert/strict';
import type { Client } from '@meerkat/client';
import type { ClusterOptions } from '@meerkat/console';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import type { ConnectionSettings } from '../connection/connection-settings.ts';
import { parseLocation, type Service } from '../connection/location.ts';
import { Progress } from '../output/progress.ts';
import type { Report } from '../output/report.ts';
import { InvocationFailure } from './command-failure.ts';
import { type CommonWords, timeoutOf } from './common-words.ts';
import type { Context, Located } from './context.ts';
import { type Io, writeAll } from './io.ts';

/** How long the service may take to learn of the end of a session. Milliseconds. */
const CLOSE_MS = 2000;

/** Opens sessions when they are needed and closes them at the end. */
export class ProcessContext implements Context, AsyncDisposable {
  readonly io: Io;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly isShell = false;
  readonly timeoutMs: number | undefined;
  readonly call: Context['call'];
  readonly #words: CommonWords;
  /** By the service, so that two paths of the same one share a session. */
  readonly #clients: Map<string, Promise<Client>> = new Map();

  constructor(io: Io, report: Report, words: CommonWords, signal: AbortSignal) {
    this.io = io;
    this.report = report;
    this.signal = signal;
    this.timeoutMs = timeoutOf(words);
    this.call = { signal, timeoutMs: this.timeoutMs };
    this.#words = words;
  }

  async servers(): Promise<readonly MonitoredServer[]> {
    const { findServers } = await import('../connection/services.ts');
    return await findServers(this.#words, this.io);
  }

  async services(profiles: readonly string[]): Promise<readonly ClusterOptions[]> {
    const { findService } = await import('../connection/services.ts');
    const others = profiles.map((name) => wordsFor({ kind: 'profile', name }, this.#words));
    return await Promise.all([this.#words, ...others].map((words) => findService(words, this.io)));
  }

  async settings(): Promise<ConnectionSettings> {
    const { settleConnection } = await import('../connection/connection-settings.ts');
    return settleConnection(this.#words, this.io);
  }

  connect(): Promise<Client> {
    return this.#connectTo({ kind: 'current' });
  }

  async locate(text: string): Promise<Located> {
    const { path, service } = parseLocation(text);
    return { client: await this.#connectTo(service), path: this.resolve(path), shown: text };
  }

  resolve(path: string): string {
    if (path.startsWith('/')) return path;
    throw new InvocationFailure(`expected the path of a znode, which begins with "/", and found "${path}"`);
  }

  note(text: string): void {
    // A reader that has closed the pipe, as head does, wants no more output.
    if (this.#words.quiet !== true && !this.io.stdout.destroyed) void writeAll(this.io.stderr, `${text}\n`);
  }

  leaveWatch(): void {
    assert(this.isShell, 'only the shell offers -w');
  }

  progress(): Progress {
    return new Progress(this.io, this.#words.quiet !== true);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const clients = await Promise.allSettled(this.#clients.values());
    await Promise.all(
      clients.map(async (result) => {
        if (result.status === 'fulfilled') await result.value.close({ timeoutMs: CLOSE_MS }).catch(() => {});
      }),
    );
  }

  #connectTo(service: Service): Promise<Client> {
    const key = JSON.stringify(service);
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const made = openSession(wordsFor(service, this.#words), this.io, this.signal);
    this.#clients.set(key, made);
    return made;
  }
}

/** How to connect to a service that a location names. @param words those of the run */
export function wordsFor(service: Service, words: CommonWords): CommonWords {
  switch (service.kind) {
    case 'current':
      return words;
    case 'hosts':
      return { ...withoutService(words), server: service.hosts };
    case 'profile':
      // Credentials and certificates of the command line belong to the service of the command line.
      return { profile: service.name, ...timesOf(words) };
  }
}

/** What belongs to the service of the command line alone: another one is not given the credentials of its profile. */
function withoutService({ chroot: _chroot, profile: _profile, ...words }: CommonWords): CommonWords {
  return words;
}

function timesOf({ sessionTimeout, connectTimeout }: CommonWords): CommonWords {
  return {
    ...(sessionTimeout === undefined ? {} : { sessionTimeout }),
    ...(connectTimeout === undefined ? {} : { connectTimeout }),
  };
}

/** The client is loaded here, not before: help and mistakes on the command line need none. */
export async function openSession(words: CommonWords, io: Io, signal: AbortSignal): Promise<Client> {
  const [{ BadArgumentsError, connect }, { settleConnection }, { saslOption }] = await Promise.all([
    import('@meerkat/client'),
    import('../connection/connection-settings.ts'),
    import('../connection/sasl-mechanism.ts'),
  ]);
  const { options, sasl } = await settleConnection(words, io);
  try {
    return await connect({ ...options, signal, ...saslOption(sasl) });
  } catch (error) {
    // Nothing was sent: a name of a server, a port or a chroot cannot be.
    if (error instanceof BadArgumentsError) {
      const found = error.message.replace(/^connect: the arguments are not acceptable: | \(BADARGUMENTS.*\)$/g, '');
      throw new InvocationFailure(`cannot connect: ${found}`, error);
    }
    throw error;
  }
}
