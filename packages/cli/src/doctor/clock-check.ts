import type { ConnectionOptions } from 'node:tls';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import { askHttp } from '@meerkat/server/archive';
import type { Finding } from './faults.ts';

/** How far a server's clock is ahead of ours, in milliseconds, and the possible error; null when it reports no time. */
export interface ClockOffset {
  readonly name: string;
  readonly offsetMs: number;
  readonly doubtMs: number;
}

/** Reads the clock of a server from the header Date of its admin port or its port for metrics: whole seconds. */
export async function readClock(
  { host, name }: MonitoredServer,
  port: number,
  tls: ConnectionOptions | null,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ClockOffset | null> {
  const scheme = tls === null ? 'http' : 'https';
  const shown = host.includes(':') ? `[${host}]` : host;
  // Apache's server sends no Date with a 404, so both paths are tried.
  for (const path of ['/commands/ruok', '/metrics']) {
    const url = `${scheme}://${shown}:${port}${path}`;
    const offset = await askDate(name, url, tls ?? {}, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
    signal.throwIfAborted();
    if (offset !== null) return offset;
  }
  return null;
}

async function askDate(
  name: string,
  url: string,
  tls: ConnectionOptions,
  signal: AbortSignal,
): Promise<ClockOffset | null> {
  const sentMs = Date.now();
  let date: string | undefined;
  try {
    ({ date } = (await askHttp(url, { method: 'HEAD', tls, signal })).headers);
  } catch {
    return null;
  }
  const timeMs = Date.parse(date ?? '');
  if (Number.isNaN(timeMs)) return null;
  const receivedMs = Date.now();
  // The header has lost up to a second.
  return { name, offsetMs: timeMs + 500 - (sentMs + receivedMs) / 2, doubtMs: 500 + (receivedMs - sentMs) / 2 };
}

/** Compares the clocks of the servers, and with that of this machine. */
export function checkClocks(offsets: readonly ClockOffset[]): Finding[] {
  return offsets.flatMap(({ name, offsetMs, doubtMs }) => {
    if (Math.abs(offsetMs) <= DIFFERENCE_MAX_MS + doubtMs) return [];
    const seconds = Math.abs(offsetMs / 1000).toFixed(0);
    const found = `its clock is ${seconds} s ${offsetMs > 0 ? 'ahead of' : 'behind'} that of this machine`;
    return [{ fault: 'clocks-differ' as const, where: name, found }];
  });
}

const DIFFERENCE_MAX_MS = 2000;
