import type { ConnectionOptions } from 'node:tls';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import type { ConnectionSettings } from '../connection/connection-settings.ts';
import { parseState } from '../monitoring/server-state.ts';
import { checkClocks, readClock } from './clock-check.ts';
import { checkEnsemble, parseMonitor, type SeenServer } from './ensemble-checks.ts';
import { exchange } from './exchange.ts';
import type { Finding } from './faults.ts';
import { probeGreeting } from './greeting-probe.ts';
import { probeSession } from './session-probe.ts';
import { probeReach } from './tcp-probe.ts';

export interface ExaminationOptions {
  /** How to connect as the client that complains. */
  readonly settings: ConnectionSettings;
  /** The HTTP port of each server, from which its time is read; the last one is used for all that follow. */
  readonly httpPorts: readonly number[];
  /** What they are asked with; null: plain HTTP. */
  readonly httpTls: ConnectionOptions | null;
  /** False: no session is opened. */
  readonly opensSessions: boolean;
  readonly timeoutMs: number;
}

export interface Examination {
  readonly findings: readonly Finding[];
  /** False: not one of the servers could be connected to. */
  readonly isAnyReached: boolean;
}

/** Asks each server what it can be asked, step by step, and then looks at all of them together. */
export async function examineServers(
  servers: readonly MonitoredServer[],
  options: ExaminationOptions,
  signal: AbortSignal,
): Promise<Examination> {
  const seen = await Promise.all(servers.map((server) => examineServer(server, options, signal)));
  const clocks = await Promise.all(
    servers.map((server, i) => {
      const port = options.httpPorts[i] ?? options.httpPorts.at(-1);
      const isReached = seen[i]?.server.isReached === true;
      return port === undefined || !isReached
        ? null
        : readClock(server, port, options.httpTls, options.timeoutMs, signal);
    }),
  );
  const findings = [
    ...seen.flatMap(({ findings }) => findings),
    ...checkEnsemble(seen.map(({ server }) => server)),
    ...checkClocks(clocks.filter((clock) => clock !== null)),
  ];
  return { findings, isAnyReached: seen.some(({ server }) => server.isReached) };
}

async function examineServer(
  server: MonitoredServer,
  { settings, opensSessions, timeoutMs }: ExaminationOptions,
  signal: AbortSignal,
): Promise<{ readonly server: SeenServer; readonly findings: readonly Finding[] }> {
  const { name } = server;
  const reach = await probeReach(server, timeoutMs, signal);
  if (!reach.isReached) {
    return {
      server: { name, state: null, monitor: null, isLooking: false, isReached: false },
      findings: reach.findings,
    };
  }
  const greeting = await probeGreeting(server, timeoutMs, signal);
  const findings = [...reach.findings, ...greeting.findings];
  const isLooking = greeting.findings.some(({ fault }) => fault === 'not-serving');
  const state = greeting.srvr === null ? null : parseState(server, greeting.srvr);
  let monitor: SeenServer['monitor'] = null;
  if (state !== null) {
    const answer = (await exchange(server, 'mntr', timeoutMs, signal)).bytes.toString();
    if (answer.includes('is not in the whitelist')) {
      findings.push({ fault: 'word-not-allowed', where: name, found: 'mntr is not answered' });
    } else monitor = parseMonitor(answer);
  }
  if (opensSessions && greeting.isSpokenTo) findings.push(...(await probeSession(server, settings, timeoutMs, signal)));
  return { server: { name, state, monitor, isLooking, isReached: true }, findings };
}
