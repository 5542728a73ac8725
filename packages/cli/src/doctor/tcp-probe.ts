import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import type { Finding } from './faults.ts';

/** Whether a server can be reached at all, and why not. */
export interface Reach {
  readonly isReached: boolean;
  readonly findings: readonly Finding[];
}

export type Resolve = (host: string) => Promise<LookupAddress[]>;

/** Resolves the name of a server, and connects to each of its addresses. */
export async function probeReach(
  { host, port, name }: MonitoredServer,
  timeoutMs: number,
  signal: AbortSignal,
  resolve: Resolve = (name) => lookup(name, { all: true }),
): Promise<Reach> {
  let addresses: readonly string[];
  try {
    addresses =
      isIP(host) !== 0 ? [host] : (await resolveWithin(resolve, host, timeoutMs, signal)).map(({ address }) => address);
  } catch (error) {
    signal.throwIfAborted();
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    const fault = code === 'EAI_AGAIN' || code === 'ETIMEOUT' ? 'name-service-silent' : 'name-unknown';
    return { isReached: false, findings: [{ fault, where: name, found: `${host} could not be resolved: ${code}` }] };
  }
  const tries = await Promise.all(
    addresses.map(async (address) => ({ address, failure: await tryAddress(address, port, timeoutMs, signal) })),
  );
  const failed = tries.filter(({ failure }) => failure !== null);
  if (failed.length === 0) return { isReached: true, findings: [] };
  const list = failed.map(({ address, failure }) => `${address}: ${failure}`).join(', ');
  if (failed.length < tries.length) {
    const found = `${host} has the addresses ${addresses.join(', ')}; ${list}`;
    return { isReached: true, findings: [{ fault: 'address-dead', where: name, found }] };
  }
  const fault = failed.some(({ failure }) => failure === REFUSED) ? 'port-closed' : 'no-route';
  return { isReached: false, findings: [{ fault, where: name, found: `${list}, port ${port}` }] };
}

/** The system's resolver asks for as long as it likes: half a minute where no name service answers. */
async function resolveWithin(
  resolve: Resolve,
  host: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<LookupAddress[]> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const ended = new Promise<never>((_, reject) => {
    const code = 'ETIMEOUT';
    const late = Object.assign(new Error(`${host} was not resolved within ${timeoutMs} ms`), { code });
    limit.addEventListener('abort', () => reject(late), { once: true });
  });
  return await Promise.race([resolve(host), ended]);
}

const REFUSED = 'refused';

/** @returns why there is no connection; null when there is */
export function tryAddress(
  address: string,
  port: number,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ host: address, port });
    const timer = setTimeout(() => end(`no answer within ${timeoutMs} ms`), timeoutMs);
    const abort = (): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(signal.reason as Error);
    };
    const end = (failure: string | null): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      socket.destroy();
      resolve(failure);
    };
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    socket.once('connect', () => end(null));
    socket.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      // A server that refuses by its own rules has taken the connection first; what it says for itself is asked later.
      // (EPIPE: it had closed, and reset as well, before this process looked.)
      if (code === 'ECONNRESET' || code === 'EPIPE') end(null);
      else end(code === 'ECONNREFUSED' ? REFUSED : code === 'ETIMEDOUT' ? 'no answer' : (code ?? message));
    });
  });
}
