import type { Column } from '../../output/column.ts';
import type { Report } from '../../output/report.ts';

/** What /zookeeper/config says. */
export interface EnsembleConfig {
  /** As it is. */
  readonly text: string;
  /** Of `version=`, hex digits; null when none is stored: without an ensemble, or without reconfigEnabled. */
  readonly version: string | null;
  readonly members: readonly Member[];
}

export interface Member {
  readonly id: string;
  /** Behind the "=". */
  readonly text: string;
  /** host:port that clients connect to; null when it does not say. */
  readonly client: string | null;
}

/**
 * Reads lines `server.N=host:quorumPort:electionPort[:role];[clientHost:]clientPort` and `version=`. Where the address of
 * clients stands for all of them, the host of the server is where it can be reached.
 */
export function parseConfig(text: string): EnsembleConfig {
  const members: Member[] = [];
  let version: string | null = null;
  for (const line of text.split('\n')) {
    const end = line.indexOf('=');
    const [key, value] = [line.slice(0, end).trim(), line.slice(end + 1).trim()];
    if (key === 'version') version = value;
    else if (key.startsWith('server.')) members.push({ id: key.slice(7), text: value, client: clientOf(value) });
  }
  return { text, version, members };
}

function clientOf(member: string): string | null {
  const [addresses = '', client] = member.split(';');
  if (client === undefined) return null;
  const colon = client.lastIndexOf(':');
  const port = client.slice(colon + 1);
  const host = client.slice(0, Math.max(0, colon));
  if (host !== '' && host !== '0.0.0.0' && !/^\[[0:]*\]$/.test(host)) return client;
  const own = addresses.startsWith('[') ? addresses.slice(0, addresses.indexOf(']') + 1) : addresses.split(':')[0];
  return `${own}:${port}`;
}

/** @param isForClients only the version, and where to connect, on one line as zkCli has it */
export async function describeConfig(report: Report, config: EnsembleConfig, isForClients: boolean): Promise<void> {
  const { text, version, members } = config;
  if (!report.isForPeople) {
    const listing = await report.list(COLUMNS);
    for (const member of members) await listing.add({ version, member });
    await listing.end();
  } else if (isForClients) {
    const clients = members.flatMap(({ client }) => (client === null ? [] : [client]));
    await report.line(`${version ?? ''} ${clients.join(',')}`);
  } else if (text === '')
    await report.line('no members are stored: the server has no ensemble, or reconfigEnabled is not true there');
  else await report.line(text.trimEnd());
}

const COLUMNS: readonly Column<{ readonly version: string | null; readonly member: Member }>[] = [
  { name: 'id', value: ({ member }) => member.id },
  { name: 'server', value: ({ member }) => member.text },
  { name: 'client', value: ({ member }) => member.client },
  { name: 'version', value: ({ version }) => version },
];
