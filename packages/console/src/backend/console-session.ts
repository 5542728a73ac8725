import type { LoginInfo } from '../api/messages.ts';
import type { ClusterSession } from './cluster-session.ts';
import { makeToken } from './security.ts';

/** One admitted browser, and its logins. */
export class ConsoleSession {
  token: string = makeToken();
  readonly csrf: string = makeToken();
  readonly clusters: Map<string, ClusterSession> = new Map();
  /** Whether it has sent the key, or none is needed. */
  isAdmitted: boolean;
  lastUsedMs: number = Date.now();
  /** Open streams: the page is open. */
  streams = 0;
  /** It has ended: what is opened for it now has to be closed again. */
  isOver = false;

  constructor(isAdmitted: boolean) {
    this.isAdmitted = isAdmitted;
  }

  loginOf(cluster: string): LoginInfo | null {
    return this.clusters.get(cluster)?.login ?? null;
  }

  /** Replaces the previous login. @returns false when the session has ended meanwhile: nothing is kept */
  async put(opened: ClusterSession): Promise<boolean> {
    const { name } = opened.cluster;
    const before = this.isOver ? opened : this.clusters.get(name);
    if (!this.isOver) this.clusters.set(name, opened);
    await before?.close();
    return !this.isOver;
  }

  async drop(cluster: string): Promise<void> {
    const open = this.clusters.get(cluster);
    this.clusters.delete(cluster);
    await open?.close();
  }

  async end(): Promise<void> {
    this.isOver = true;
    const open = [...this.clusters.values()];
    this.clusters.clear();
    await Promise.all(open.map((cluster) => cluster.close()));
  }
}

/**
 * The sessions of all browsers, by the token in their cookie. Idle ones expire after hours; the oldest is evicted if
 * there are too many.
 */
export class ConsoleSessions {
  readonly #sessions: Map<string, ConsoleSession> = new Map();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#sweep(Date.now()), SWEEP_MS).unref();
  }

  find(token: string | null): ConsoleSession | null {
    const session = token === null ? undefined : this.#sessions.get(token);
    if (session === undefined) return null;
    session.lastUsedMs = Date.now();
    return session;
  }

  begin(isAdmitted: boolean): ConsoleSession {
    if (this.#sessions.size >= SESSIONS_MAX) {
      // A session without a login is evicted before one that is used.
      const all = [...this.#sessions.values()].sort((a, b) => a.lastUsedMs - b.lastUsedMs);
      const oldest =
        all.find((session) => !session.isAdmitted) ?? all.find((session) => session.clusters.size === 0) ?? all[0];
      if (oldest !== undefined) void this.end(oldest);
    }
    const session = new ConsoleSession(isAdmitted);
    this.#sessions.set(session.token, session);
    return session;
  }

  /** Sets a new token: one that was planted into the browser before becomes worthless. */
  renew(session: ConsoleSession): void {
    if (!this.#sessions.delete(session.token)) return;
    session.token = makeToken();
    this.#sessions.set(session.token, session);
  }

  async end(session: ConsoleSession): Promise<void> {
    this.#sessions.delete(session.token);
    await session.end();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#sessions.values()].map((session) => this.end(session)));
  }

  #sweep(nowMs: number): void {
    for (const session of this.#sessions.values()) {
      if (session.streams === 0 && nowMs - session.lastUsedMs > IDLE_MS) void this.end(session);
      else for (const cluster of session.clusters.values()) cluster.forgetUnused(nowMs);
    }
  }
}

const SESSIONS_MAX = 200;
const IDLE_MS = 8 * 3_600_000;
const SWEEP_MS = 60_000;
