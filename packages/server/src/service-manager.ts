import { spawn } from 'node:child_process';
import type { Trace, TraceEvent } from '@meerkat/core';
import type { Logger } from './logger.ts';

/**
 * Tells the manager of services, systemd with `Type=notify`, how this process is doing: that it is ready, that it stops, and a
 * line for `systemctl status`.
 *
 * The program `systemd-notify` sends it, since Node.js has no datagram sockets of the file system; so the unit needs
 * `NotifyAccess=all`. One message after the other, of several lines for `status` the latest.
 *
 * @see man 3 sd_notify
 */
export class ServiceManager {
  readonly trace: Trace = { emit: (event) => this.#onTrace(event) };
  readonly isThere: boolean;
  readonly #logger: Logger;
  #isReady = false;
  #isStopping = false;
  /** What is still to be sent; null when nothing is being sent. */
  #waiting: Message[] | null = null;

  /** @param environment of the process; without NOTIFY_SOCKET nothing is sent */
  constructor(environment: NodeJS.ProcessEnv, logger: Logger) {
    this.#logger = logger;
    this.isThere = (environment['NOTIFY_SOCKET'] ?? '') !== '';
  }

  /** What waits for this service may start. Only the first call counts. */
  onReady(status: string): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#send({ state: 'READY=1', status });
  }

  onStopping(): void {
    this.#isStopping = true;
    this.#send({ state: 'STOPPING=1', status: 'finishes what is in flight' });
  }

  #onTrace(event: TraceEvent): void {
    if (this.#isStopping || (event.kind !== 'role-changed' && event.kind !== 'epoch-established')) return;
    const status = event.kind === 'role-changed' ? ROLES[event.role] : `clients are served in epoch ${event.epoch}`;
    this.#send({ state: null, status });
  }

  #send(message: Message): void {
    if (!this.isThere) return;
    if (this.#waiting === null) {
      this.#waiting = [];
      this.#start(message);
      return;
    }
    // Roles may change faster than they are reported: only the latest one is sent.
    if (this.#waiting.at(-1)?.state === null) this.#waiting.pop();
    this.#waiting.push(message);
  }

  #start({ state, status }: Message): void {
    const words = state === null ? [`STATUS=${status}`] : [state, `STATUS=${status}`];
    const child = spawn('systemd-notify', words, { stdio: 'ignore' });
    let isOver = false;
    const onEnd = (fault: string | null): void => {
      if (isOver) return;
      isOver = true;
      if (fault !== null) this.#logger.log('warn', `cannot tell systemd ${words[0]}: systemd-notify ${fault}`);
      const next = this.#waiting?.shift();
      if (next === undefined) this.#waiting = null;
      else this.#start(next);
    };
    child.once('error', (error) => onEnd(`does not start: ${error.message}`));
    child.once('exit', (code, signal) => onEnd(code === 0 ? null : `ended with ${signal ?? `exit code ${code}`}`));
    // A manager that does not listen keeps no server from ending.
    child.unref();
  }
}

interface Message {
  /** What systemd acts on; null when there is only a line for people. */
  readonly state: 'READY=1' | 'STOPPING=1' | null;
  readonly status: string;
}

const ROLES = {
  looking: 'looks for a leader: clients are not served',
  leading: 'leads, and waits for a quorum of followers',
  following: 'follows a leader, and catches up with it',
  observing: 'observes a leader, and catches up with it',
} as const;
