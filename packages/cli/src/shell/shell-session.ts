import type { Client, ClientState, StateChange } from '@meerkat/client';
import { DEFAULT_SERVER } from '../connection/connection-settings.ts';
import { CommandFailure } from '../run/command-failure.ts';
import type { CommonWords } from '../run/common-words.ts';
import { CommandExit } from '../run/exit-code.ts';
import type { Io } from '../run/io.ts';
import { openSession } from '../run/process-context.ts';

/** How long the service may take to learn of the end of a session. Milliseconds. */
const CLOSE_MS = 2000;

/** What the prompt says of the session, in zkCli's words where it has one. */
export type SessionState = ClientState | 'closed';

/** The session of a shell: opened for the first command that needs it, replaced by `connect`. Reports state changes. */
export class ShellSession {
  readonly #io: Io;
  readonly #onChange: (change: StateChange) => void;
  #words: CommonWords;
  #client: Client | null = null;
  #opening: Promise<Client> | null = null;
  /** `close` was typed: only `connect` opens another. */
  #isClosed = false;
  /** Whether a session was ever opened. */
  hasBeenOpen = false;

  constructor(io: Io, words: CommonWords, onChange: (change: StateChange) => void) {
    this.#io = io;
    this.#words = words;
    this.#onChange = onChange;
  }

  /** The client, once there is one. */
  get client(): Client | null {
    return this.#client;
  }

  get state(): SessionState {
    if (this.#client !== null) return this.#client.state;
    return this.#opening === null ? 'closed' : 'connecting';
  }

  /** The connected server, else what was asked for: `127.0.0.1:2181`. */
  get server(): string {
    const server = this.#client?.server ?? null;
    if (server !== null) return `${server.host.includes(':') ? `[${server.host}]` : server.host}:${server.port}`;
    return this.#words.server ?? this.#io.env['MEERKAT_SERVER'] ?? this.#words.profile ?? DEFAULT_SERVER;
  }

  /** @throws CommandFailure after `close`; ConnectError */
  open(signal: AbortSignal): Promise<Client> {
    if (this.#isClosed) {
      const message = 'Not connected: the session was closed; "connect" opens another, also "connect host:port"';
      return Promise.reject(new CommandFailure(CommandExit.unreachable, message));
    }
    if (this.#client !== null) return Promise.resolve(this.#client);
    this.#opening ??= this.#open(signal);
    return this.#opening;
  }

  /** Ends the session, if there is one, and opens another. @param servers null: those of now */
  async replace(servers: string | null, signal: AbortSignal): Promise<Client> {
    await this.close();
    this.#isClosed = false;
    // A chroot that is given apart belongs to the service that it was given with.
    if (servers !== null) {
      const { chroot: _, profile: __, ...words } = this.#words;
      this.#words = { ...words, server: servers };
    }
    return this.open(signal);
  }

  /** Ends the session: its ephemeral znodes go, its watches end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client ?? (await this.#opening?.catch(() => null)) ?? null;
    this.#client = null;
    await client?.close({ timeoutMs: CLOSE_MS }).catch(() => {});
  }

  async #open(signal: AbortSignal): Promise<Client> {
    try {
      const client = await openSession(this.#words, this.#io, signal);
      this.#client = client;
      this.hasBeenOpen = true;
      client.onState((change) => {
        // Refused credentials end a client; the next command opens another, without them.
        if (change.state === 'auth-failed' && this.#client === client) this.#client = null;
        this.#onChange(change);
      });
      return client;
    } finally {
      this.#opening = null;
    }
  }
}
