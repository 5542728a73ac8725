/** The contents of /zookeeper/config. */
export interface EnsembleConfig {
  /** Unparsed. */
  readonly text: string;
  /** Of `version=`, hex digits; null when none is stored: without an ensemble, or without reconfigEnabled. */
  readonly version: string | null;
  readonly members: readonly ConfiguredMember[];
}

export interface ConfiguredMember {
  readonly id: string;
  /** The text after the "=". */
  readonly text: string;
  /** host:port for clients; null when it is not given. */
  readonly client: string | null;
}

/**
 * Parses lines `server.N=host:quorumPort:electionPort[:role];[clientHost:]clientPort` and `version=`. Where the client
 * address is a wildcard, the server is reachable at its host.
 */
export function parseConfig(text: string): EnsembleConfig {
  const members: ConfiguredMember[] = [];
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
