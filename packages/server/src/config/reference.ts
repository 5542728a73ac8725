import type { Key, Tier } from './key.ts';
import { KEYS } from './keys.ts';

const TIERS: readonly { readonly tier: Tier; readonly title: string; readonly text: string }[] = [
  { tier: 'supported', title: 'Keys that take effect', text: '' },
  {
    tier: 'accepted',
    title: 'Keys that are accepted',
    text: 'Their values are checked, and have no effect.',
  },
  {
    tier: 'security',
    title: 'Keys about security that are not supported',
    text: 'Each stops the start, unless its value asks for nothing ("silent"): a server is never less safe than its file says.',
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

- An unknown key is a warning; one about security stops the start.
- An invalid value stops the start with file, line, key and what is expected (exit code 2).
- One \`server.N\` line is a server on its own; several are an ensemble.
- A default of \`true\`, \`false\`, \`yes\` or \`no\` has one alternative. Numbers are whole; "≥ 0" ends at 2147483647, of KiB at 1099511627776. Too small \`snapCount\`, \`commitLogCount\` and \`autopurge.snapRetainCount\` are raised with a warning.
- "(Meerkat)": no key of Apache's.

## Limits of connections

| what is limited | by |
| --- | --- |
| connections of one address, of all clients | \`maxClientCnxns\`, \`maxCnxns\`; more are refused |
| a client without a session | \`nio.sessionlessCnxnTimeout\` |
| a silent client | its session timeout and two ticks |
| a server that does not say who it is | \`cnxTimeout\` at the election port, \`initLimit\` ticks at the quorum port of a leader; 256 and 64 at a time, then the oldest of the address with most of them are closed |

Of the open files that the process may have (\`ulimit -n\`; see \`mntr\`) an eighth is kept for files, in an ensemble an eighth each for quorum and election port. When the rest is used up a new client replaces the
oldest connection that only waits for its peer to close, else the oldest without a session of the address with most of them, else it is refused. A warning a minute reports it: raise the limit, or set \`maxCnxns\`.

## An ensemble

The file is the same on every server. \`myid\` in the data directory holds the server's number, and nothing else.

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

The first port is for followers, the second for elections; \`:observer\` may follow, and after a semicolon the address for clients. Names are resolved for each connection. A missing, wrong or
unlisted \`myid\`, a repeated address, missing limits, observers of a single participant stop the start; an even number of voters is a warning.

### When it does not come together

A server that looks for a leader logs every ten seconds whom it reaches.

| the log says | what to do |
| --- | --- |
| \`without a connection: 3 (nobody listens at …)\` | start server 3; if it runs, compare the lines \`server.3\` of both |
| \`(the name … is not known)\`, \`(nothing answers at …)\` | look at name service, network, firewall |
| \`cannot listen for the election at …: EADDRINUSE\` | stop what listens there, perhaps a server with the same \`myid\` |
| \`cannot listen for followers at …: EADDRINUSE\` | the same; until then it votes and follows, but [does not lead](zab.md#when-a-server-decides) |
| \`…: EADDRNOTAVAIL\` | correct the address or \`myid\`; behind a translated address set \`quorumListenOnAllIPs=true\` |
| \`refused: on the election port: it says that it is server 1, which is this one\` | two servers have one \`myid\`: the address tells the other one |
| \`server 3 follows a membership that differs from this one's\` | make the lists alike, restart those that were wrong |
| \`the leader is of epoch 6, but this server has accepted epoch 50\`, again and again | its directory is of another ensemble, or the others' are older copies. If this one is wrong, stop it, set \`version-2\` aside, start it: the leader sends everything |
| \`is sent a snapshot of … in place of txns that this leader does not know\` | the same; what only that server had is gone from it |

A directory of another ensemble with a later zxid *wins* the next election, and its znodes replace the others': start a new member with an empty directory.
`;

function formatSupported(keys: readonly Key[]): string {
  const rows = keys.filter((key) => !isSaidOfClients(key, keys));
  return formatTable(
    ['key', 'default; values', 'meaning'],
    mergeRows(rows.map((key) => [`\`${key.name}\`${formatTwins(key, keys)}`, formatValues(key), key.meaning])),
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

/** The default and what else a key takes; a default of true, false, yes or no says both. */
function formatValues({ default: byDefault, expected }: Key): string {
  const isClear = byDefault !== '' && ['true or false', 'yes or no'].includes(expected);
  const others = expected.split(' or ').filter((value) => value !== byDefault);
  return [formatCode(byDefault), isClear ? '' : formatExpected(others.join(' or '))]
    .filter((text) => text !== '')
    .join('; ');
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

/** What is expected, shorter than an error message says it. */
function formatExpected(text: string): string {
  return text
    .replace('a whole number from -2147483648 to 2147483647', 'a number')
    .replace(/^a whole number from (\S+) to (?:2147483647|1099511627776)\b/, '≥ $1')
    .replace(/^a whole number from (\S+) to (\S+)/, '$1–$2')
    .replace(/ \((ms|KiB|ticks|bytes)\b[^)]*\)/, ' $1')
    .replace(', decimal or as 0x…', ' or 0x…')
    .replace('words with commas between them, or *', '`a,b` or `*`')
    .replace('a host name or an address', 'host')
    .replace(/^(a \w+) such as .*/, '$1')
    .replace('the name of a hash: ', '')
    .replace(/^names of cipher suites with commas .*/, 'names `a,b`')
    .replace(/^(the path of a module, or the name of a class), but .*/, '$1')
    .replace(/^false: .*/, '')
    .replace(/^the path of a (\w+)$/, '$1')
    .replace(/^an? (\w+)$/, '$1');
}

function formatCode(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, header.map(() => '---'), ...rows];
  return `${lines.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`).join('\n')}\n`;
}
