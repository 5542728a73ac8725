import type { Key, Tier } from './key.ts';
import { KEYS } from './keys.ts';

const TIERS: readonly { readonly tier: Tier; readonly title: string; readonly text: string }[] = [
  { tier: 'supported', title: 'Keys that take effect', text: '' },
  {
    tier: 'accepted',
    title: 'Keys that are accepted',
    text: 'Their values are checked, and have no effect here.',
  },
  {
    tier: 'later',
    title: 'Keys that are not supported yet',
    text: 'Each is warned about, unless its value asks for nothing (the column "silent").',
  },
  {
    tier: 'security',
    title: 'Keys about security that are not supported yet',
    text: 'Each stops the start, unless its value asks for nothing: a server is never less safe than its file says.',
  },
];

/** The page `docs/configuration.md`, made from the table of keys. */
export function formatReference(): string {
  const sections = TIERS.map(({ tier, title, text }) => {
    const keys = KEYS.filter((key) => key.tier === tier);
    const table =
      tier === 'supported' ? formatSupported(keys) : tier === 'accepted' ? formatAccepted(keys) : formatMissing(keys);
    return `## ${title}\n\n${text === '' ? '' : `${text}\n\n`}${table}`;
  });
  return `${INTRODUCTION}\n${sections.join('\n')}`;
}

const INTRODUCTION = `# Configuration

<!-- Generated from packages/server/src/config (text: reference.ts). Edit there, then run "npx vitest run packages/server/src/config -u". -->

Every key of \`zoo.cfg\`: \`meerkat server path/to/zoo.cfg\`. The smallest one is

\`\`\`properties
dataDir=/var/lib/meerkat
clientPort=2181
\`\`\`

A Java properties file in UTF-8; the last line of a key counts. Apache's system properties go into it, with or without \`zookeeper.\`. \`meerkat server\` also takes them
(\`-Dzookeeper.NAME=VALUE\`) from \`SERVER_JVMFLAGS\`, \`JVMFLAGS\` and \`KAFKA_OPTS\`, in this order; the file overrides them.

- An unknown or not yet supported key is a warning; one about security stops the start.
- An invalid value stops the start with file, line, key and what is expected (exit code 2).
- One \`server.N\` line is a server on its own; several are an ensemble.
- A key that is \`true\` or \`false\` by default, with nothing else named, takes these two. Numbers are whole; "0 or more" ends at 2147483647, of KiB at 1099511627776. Too small \`snapCount\` and \`autopurge.snapRetainCount\` are raised with a warning.

## Limits of connections

| what is limited | by |
| --- | --- |
| connections of one address | \`maxClientCnxns\`; those beyond are refused |
| connections of all clients | \`maxCnxns\`; those beyond are refused |
| a client that does not ask for a session | \`nio.sessionlessCnxnTimeout\`, 10 s |
| a client that sends nothing | the timeout of its session, and two ticks |
| a server that does not say who it is | \`cnxTimeout\` at the election port, \`initLimit\` ticks at the quorum port of a leader, half a second at that of a server that looks for one, at once at any other |
| such servers at a time | 256 at the election port, 64 at the quorum port; of more, the oldest of the address that has the most are closed |
| learners that are no members, such as an observer that the list does not name | 64 at a leader, fewer where descriptors run short; of more, the oldest of the address that has the most are closed |
| a peer that does not close its end, or does not read, after this server has ended the connection | 10 s, less where descriptors run short |

Of the process's limit of open files (\`ulimit -n\`; \`mntr\` shows it) an eighth, 12 to 64, is kept for files, in an ensemble an eighth each for the quorum and election port; the
rest is for clients. When it is used up a new client replaces the oldest connection that only waits for its peer to close, else the oldest without a session of the address
(IPv6: /64) that has most of them. If all have sessions the new one is refused. Servers that have not said who they are give way likewise. A warning a minute reports it: raise
the limit, or set \`maxCnxns\`. Where the limit is unknown, as outside Linux, only the table counts, and opening a file is retried for five seconds.

## An ensemble

The file is the same on every server. The file \`myid\` in the data directory holds the server's number, and nothing else.

\`\`\`properties
dataDir=/var/lib/meerkat
clientPort=2181
tickTime=2000
initLimit=10
syncLimit=5
server.1=zk1.example.org:2888:3888
server.2=zk2.example.org:2888:3888
server.3=zk3.example.org:2888:3888
\`\`\`

The first port is for followers, the second for elections; \`:observer\` may follow, and after a semicolon the address for clients. Names are resolved for each connection.
Contradictions (\`myid\` missing, no number or not listed, an address twice, missing limits, observers of a single participant) stop the start; an even number of voters is a
warning.

### When it does not come together

A server that looks for a leader logs every ten seconds whom it reaches.

| the log says | what to do |
| --- | --- |
| \`without a connection: 3 (nobody listens at …)\` | start server 3; if it runs, compare the lines \`server.3\` of both |
| \`(the name … is not known)\`, \`(nothing answers at …)\` | look at the name service, the network, the firewall |
| \`cannot listen for the election at …: EADDRINUSE\` | stop what listens there; two servers with one \`myid\` on one machine are in each other's way too |
| \`cannot listen for followers at …: EADDRINUSE\` | the same. Until the port is free this server votes and follows, but [does not lead](zab.md#when-a-server-decides) |
| \`…: EADDRNOTAVAIL\` | the list has another machine's address for this \`myid\`: correct one of them. Behind a translated address set \`quorumListenOnAllIPs=true\` |
| \`refused: on the election port: it says that it is server 1, which is this one\` | two servers have one \`myid\`: the address tells the other one |
| \`server 3 follows a membership that differs from this one's\` | make the lists alike, and restart the servers whose list was wrong |
| \`the leader is of epoch 6, but this server has accepted epoch 50\`, again and again | this directory is of another ensemble, or the others' were restored from older copies. If this one is wrong, stop the server, set \`version-2\` aside and start it: the leader sends it everything |
| \`is sent a snapshot of … in place of txns that this leader does not know\` | the same, and what only that server had is gone from it |

A directory of another ensemble whose zxid is ahead *wins* the next election, and its znodes replace the others': start a new member with an empty directory.
`;

function formatSupported(keys: readonly Key[]): string {
  const rows = keys.filter((key) => !isSaidOfClients(key, keys));
  return formatTable(
    ['key', 'default', 'value', 'meaning'],
    rows.map((key) => [
      `\`${key.name}\`${formatTwins(key, keys)}`,
      formatCode(key.default),
      formatValue(key),
      key.meaning,
    ]),
  );
}

const CLIENTS = 'ssl.';
/** Where keys of `ssl.` are found again, about other ports. */
const OTHERS = ['ssl.quorum.', 'admin.ssl.', 'metricsProvider.ssl.'];

/** The same about other ports. */
function findTwins(key: Key, keys: readonly Key[]): readonly Key[] {
  if (!key.name.startsWith(CLIENTS) || key.name.startsWith('ssl.quorum.')) return [];
  return OTHERS.flatMap((prefix) => {
    const twin = keys.find((other) => other.name === prefix + key.name.slice(CLIENTS.length));
    const isSame =
      twin !== undefined &&
      twin.default === key.default &&
      twin.expected === key.expected &&
      twin.meaning.replaceAll(prefix, CLIENTS) === key.meaning;
    return isSame ? [twin] : [];
  });
}

/** Of keys that are alike for several ports one row says all. */
function formatTwins(key: Key, keys: readonly Key[]): string {
  return findTwins(key, keys)
    .map(({ name }) => ` \`${name}\``)
    .join('');
}

function isSaidOfClients(key: Key, keys: readonly Key[]): boolean {
  return keys.some((other) => findTwins(other, keys).includes(key));
}

/** A default of true or false says what else it may be. */
function formatValue({ default: byDefault, expected }: Key): string {
  const isClear = expected === 'true or false' && (byDefault === 'true' || byDefault === 'false');
  return isClear ? '' : formatExpected(expected);
}

function formatAccepted(keys: readonly Key[]): string {
  return formatTable(['keys', 'meaning'], mergeRows(keys.map((key) => [`\`${key.name}\``, key.meaning])));
}

function formatMissing(keys: readonly Key[]): string {
  return formatTable(
    ['keys', 'silent', 'meaning'],
    mergeRows(keys.map((key) => [`\`${key.name}\``, key.harmless.map(formatCode).join(' '), key.meaning])),
  );
}

/** Makes one row of those that differ in their first cell alone. */
function mergeRows(rows: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const firsts = new Map<string, string[]>();
  for (const [first = '', ...rest] of rows) {
    const key = JSON.stringify(rest);
    firsts.set(key, [...(firsts.get(key) ?? []), first]);
  }
  return [...firsts].map(([rest, names]) => [names.join(' '), ...(JSON.parse(rest) as string[])]);
}

/** A range, shorter than an error message says it. */
function formatExpected(text: string): string {
  return text
    .replace(/^a whole number from (\S+) to (?:2147483647|1099511627776)\b/, '$1 or more')
    .replace(/^a whole number from (\S+) to (\S+)/, '$1 to $2')
    .replace(/^-2147483648 or more/, 'a whole number');
}

function formatCode(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, header.map(() => '---'), ...rows];
  return `${lines.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`).join('\n')}\n`;
}
