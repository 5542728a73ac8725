import type { FaultName, Finding } from './faults.ts';
import type { LogLine } from './log-lines.ts';

/** What logs of servers and of the client say of one session. */
export class SessionHistory {
  /** Hexadecimal digits without zeros before them. */
  readonly #digits: string;
  readonly #mentioned: RegExp;
  #expired: { readonly line: LogLine; readonly timeoutMs: number } | null = null;
  /** The last time that the client's end of the connection was closed, without the session. */
  #left: LogLine | null = null;
  #closed: LogLine | null = null;
  #stalls: { readonly line: LogLine; readonly ms: number }[] = [];
  /** What the client itself says. */
  #clientStalled: { readonly line: LogLine; readonly ms: number } | null = null;
  #clientSilent: LogLine | null = null;
  #closedUnder: LogLine | null = null;

  constructor(sessionId: bigint) {
    this.#digits = BigInt.asUintN(64, sessionId).toString(16);
    this.#mentioned = new RegExp(`0x0*${this.#digits}\\b`);
  }

  addServerLine(line: LogLine): void {
    const { text } = line;
    const pause = /(?:stood still for|pause of approximately) (\d+) ?ms/.exec(text);
    if (pause !== null) this.#stalls.push({ line, ms: Number(pause[1]) });
    if (!this.#mentioned.test(text)) return;
    const timeout =
      /has expired: nothing received from it for (\d+) ms|Expiring session 0x[0-9a-f]+, timeout of (\d+)ms exceeded/.exec(
        text,
      );
    if (timeout !== null) this.#expired = { line, timeoutMs: Number(timeout[1] ?? timeout[2]) };
    else if (/closed by peer|reset by peer|it probably closed the socket|Connection reset/.test(text))
      this.#left = line;
    else if (/its session is closed|Processed session termination/.test(text)) this.#closed = line;
  }

  addClientLine(line: LogLine): void {
    const { text } = line;
    // Java's client reports how long the server was silent, ours how late a ping was. A client that was not stalled
    // notices long before its timeout.
    const silence = /have not heard from server in (\d+)ms/.exec(text);
    if (silence !== null) {
      if (!this.#concerns(text)) return;
      const ms = Number(silence[1]);
      const timeoutMs = this.#expired?.timeoutMs ?? Number.POSITIVE_INFINITY;
      if (ms >= timeoutMs) this.#clientStalled = { line, ms };
      else this.#clientSilent = line;
      return;
    }
    // It noticed nothing before the server had closed the connection of the dead session.
    if (/likely server has closed socket/.test(text) && this.#mentioned.test(text)) this.#closedUnder = line;
    const stall = /"?stalledMs"?: ?(\d+)/.exec(text);
    if (stall !== null) this.#clientStalled = { line, ms: Number(stall[1]) };
    else if (
      /heartbeat ping not received|ECONNREFUSED|Connection refused|ETIMEDOUT|Session establishment.*timed out/.test(
        text,
      )
    )
      this.#clientSilent ??= line;
  }

  /** The cause, as far as the logs show it. */
  conclude(): Finding {
    const where = `0x${this.#digits}`;
    const finding = (fault: FaultName, found: string): Finding => ({ fault, where, found });
    if (this.#expired === null) {
      if (this.#closed !== null) return finding('session-closed', quote(this.#closed));
      return finding('session-not-found', 'no line of the logs reports its end');
    }
    const { line, timeoutMs } = this.#expired;
    const expired = quote(line);
    if (this.#clientStalled !== null) {
      return finding('session-expired-client-stalled', `${expired}; the client: ${quote(this.#clientStalled.line)}`);
    }
    const stall = this.#stalls.find(({ ms, line: { timeMs } }) => isNear(timeMs, line.timeMs, timeoutMs + ms));
    if (stall !== undefined) return finding('session-expired-server-stalled', `${expired}; ${quote(stall.line)}`);
    if (this.#clientSilent !== null) {
      return finding('session-expired-network', `${expired}; the client: ${quote(this.#clientSilent)}`);
    }
    if (this.#closedUnder !== null) {
      return finding(
        'session-expired-client-stalled',
        `${expired}; the client first noticed: ${quote(this.#closedUnder)}`,
      );
    }
    const isGone = this.#left !== null && isNear(this.#left.timeMs, line.timeMs, 2 * timeoutMs + GRACE_MS);
    if (isGone && this.#left !== null)
      return finding('session-expired-client-gone', `${quote(this.#left)}; ${expired}`);
    return finding('session-expired-silence', `${expired}; nothing shows that its connection ended before`);
  }

  #concerns(text: string): boolean {
    return !/0x[0-9a-f]+/.test(text) || this.#mentioned.test(text);
  }
}

/** Sessions expire up to a tick or two later. Milliseconds. */
const GRACE_MS = 10_000;

function isNear(aMs: number | null, bMs: number | null, withinMs: number): boolean {
  return aMs !== null && bMs !== null && Math.abs(aMs - bMs) <= withinMs + GRACE_MS;
}

function quote({ time, text }: LogLine): string {
  return `${time} ${text.slice(0, 200)}`.trim();
}
