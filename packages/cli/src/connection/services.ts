import { parseConnectString } from '@meerkat/client';
import type { ClusterOptions } from '@meerkat/console';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import type { CommonWords } from '../run/common-words.ts';
import type { Io } from '../run/io.ts';
import { type ConnectionSettings, settleConnection } from './connection-settings.ts';
import { saslOption } from './sasl-mechanism.ts';

/** The servers of a service, each to be asked by itself. */
export async function findServers(words: CommonWords, io: Io): Promise<readonly MonitoredServer[]> {
  return serversOf(await settleConnection(words, io));
}

/** A service as the console shows it, under the name of its profile or its address. */
export async function findService(words: CommonWords, io: Io): Promise<ClusterOptions> {
  const settings = await settleConnection(words, io);
  const { options, sasl } = settings;
  const servers = serversOf(settings);
  const tls = typeof options.tls === 'function' ? options.tls() : options.tls;
  const hasOwnLogin = sasl !== null || (options.auth ?? []).length > 0 || tls?.cert !== undefined;
  return {
    name: words.profile ?? (servers[0]?.name ?? 'service').replace(/[^\w.-]/g, '-'),
    connection: { ...options, ...saslOption(sasl) },
    servers,
    hasOwnLogin,
  };
}

function serversOf({ options }: ConnectionSettings): readonly MonitoredServer[] {
  const { hosts } = parseConnectString(options.servers);
  const tls = typeof options.tls === 'function' ? options.tls() : (options.tls ?? null);
  return hosts.map(({ host, port }) => {
    return { host, port, name: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`, tls };
  });
}
