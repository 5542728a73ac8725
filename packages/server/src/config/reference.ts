import { ENSEMBLE_KEYS } from './ensemble-keys.ts';
import { HTTP_KEYS } from './http-keys.ts';
import type { Key } from './key.ts';
import { KEYS } from './keys.ts';
import { LIMIT_KEYS } from './limit-keys.ts';
import { SASL_KEYS } from './sasl-keys.ts';
import { SUPPORTED_KEYS } from './supported-keys.ts';
import { TLS_KEYS } from './tls-keys.ts';

interface Section {
  readonly title: string;
  readonly text?: string;
  has(key: Key): boolean;
}

const CLIENTS = 'ssl.';
/** Where keys of `ssl.` are found again, about other ports. */
const OTHERS = ['ssl.quorum.', 'admin.ssl.', 'metricsProvider.ssl.'];

const isOneOf =
  (...tables: readonly (readonly Key[])[]) =>
  (key: Key): boolean =>
    tables.some((table) => table.includes(key)) && findTwins(key).length === 0;

/** A key of the longest table, behind which another subject begins. */
const isBetween =
  (first: string, end: string | null) =>
  (key: Key): boolean => {
    const place = (name: string): number => SUPPORTED_KEYS.findIndex((some) => some.name === name);
    const at = SUPPORTED_KEYS.indexOf(key);
    return at >= place(first) && (end === null || at < place(end));
  };

const SECTIONS: readonly Section[] = [
  { title: 'Ports, sessions, requests', has: isBetween('clientPort', 'skipACL') },
  { title: 'The tree', has: isBetween('skipACL', 'DigestAuthenticationProvider.enabled') },
  { title: 'Schemes', has: isBetween('DigestAuthenticationProvider.enabled', 'snapCount') },
  { title: 'Log and snapshots', has: isBetween('snapCount', null) },
  { title: 'SASL, audit, passwords of sessions', has: isOneOf(SASL_KEYS) },
  { title: 'TLS', has: isOneOf(TLS_KEYS) },
  {
    title: 'TLS of every port',
    text: 'The same with `ssl.quorum.` between servers, `admin.ssl.` for the admin port, `metricsProvider.ssl.` for the port for Prometheus.',
    has: (key) => findTwins(key).length === OTHERS.length,
  },
  {
    title: 'TLS for clients and between servers',
    text: 'The same with `ssl.quorum.` between servers.',
    has: (key) => findTwins(key).length === 1,
  },
  { title: 'HTTP: admin port, console, Prometheus', has: isOneOf(HTTP_KEYS) },
  { title: 'Limits', text: 'What each refuses: [limits](limits.md#refusals).', has: isOneOf(LIMIT_KEYS) },
  { title: 'Ensemble', has: isOneOf(ENSEMBLE_KEYS) },
];

/** The page `docs/configuration.md`, made from the table of keys. */
export function formatReference(): string {
  const supported = KEYS.filter((key) => key.tier === 'supported' && !isSaidOfClients(key));
  const sections = SECTIONS.map(({ title, text = '', has }) => {
    const list = formatList(supported.filter(has).map((key) => [key.name, formatValues(key), key.meaning]));
    return `### ${title}\n\n${text === '' ? '' : `${text}\n\n`}${list}`;
  });
  const without = supported.filter((key) => !SECTIONS.some(({ has }) => has(key)));
  if (without.length > 0) throw new Error(`in no section: ${without.map(({ name }) => name).join(', ')}`);
  const accepted = KEYS.filter(({ tier }) => tier === 'accepted').map(({ name, meaning }) => [name, '', meaning]);
  const missing = KEYS.filter(({ tier }) => tier === 'security').map(
    ({ name, harmless }) =>
      `${formatCode(name)}${harmless.length === 0 ? '' : ` (${harmless.map(formatCode).join(' ')})`}`,
  );
  return [
    INTRODUCTION,
    ...sections,
    `## Keys that are accepted\n\nTheir values are checked, and have no effect.\n\n${formatList(accepted)}`,
    `## Keys about security that are not supported\n\nAny other key of these stops the start, unless it has the value in parentheses: a server is never less safe than its file says.\n\n${missing.join(', ')}.\n`,
  ].join('\n');
}

const INTRODUCTION = `# Configuration

<!-- Generated from packages/server/src/config (text: reference.ts). Edit there, then run "npx vitest run packages/server/src/config -u". -->

Every key of \`zoo.cfg\`. The smallest file, for \`meerkat server path/to/zoo.cfg\`, is

\`\`\`properties
dataDir=/var/lib/meerkat
clientPort=2181
\`\`\`

It is a Java properties file in UTF-8; the last line of a key counts. Apache's system properties go into it, with or without \`zookeeper.\`. \`meerkat server\` also takes
them (\`-Dzookeeper.NAME=VALUE\`, without \`zookeeper.\` where Apache's server takes it so) from \`SERVER_JVMFLAGS\`, \`JVMFLAGS\` and \`KAFKA_OPTS\`, in this order; the file overrides them.

- An unknown key is a warning; one about security stops the start.
- An invalid value stops the start with file, line, key and what is expected (exit code 2).
- Parentheses have the default, then the unit or the other values. A default of \`true\`, \`false\`, \`yes\` or \`no\` has one alternative.
- "(Meerkat)": no key of Apache's.

## Limits of connections

Beyond \`maxClientCnxns\` of one address, or \`maxCnxns\` in all, clients are refused. A server has \`cnxTimeout\` at the election port, and \`initLimit\` ticks at a leader's quorum port, to say who it is; 256 and 64
connections may wait so.

Of the files that the process may open (\`ulimit -n\`) an eighth is kept for files, in an ensemble an eighth each for quorum and election port. When the rest is used up a new client replaces the oldest connection
that only waits for its peer to close, else the oldest without a session of the address with most of them; else it is refused. A warning a minute reports it: raise the limit, or set \`maxCnxns\`.

## An ensemble

The file is the same on every server. \`myid\` in the data directory holds the server's number, and nothing else. One \`server.N\` line is a server on its own.

\`\`\`properties
dataDir=/var/lib/meerkat
clientPort=2181
initLimit=10
syncLimit=5
server.1=zk1.example.org:2888:3888
server.2=zk2.example.org:2888:3888
server.3=zk3.example.org:2888:3888
\`\`\`

The first port is for followers, the second for elections; \`:observer\` may follow, and after a semicolon the address for clients. Names are resolved for each connection. A missing, wrong or unlisted \`myid\`, a repeated address, missing limits, observers of a single participant stop the start; an even number of voters is a warning.

### When it does not come together

A server that looks for a leader logs every ten seconds which servers it reaches.

- \`without a connection: 3 (nothing listens at …)\`: start server 3; if it runs, compare the lines \`server.3\` of both.
- \`(the name … is not known)\`, \`(nothing answers at …)\`: look at name service, network, firewall.
- \`cannot listen for the election at …: EADDRINUSE\`: stop what listens there, perhaps a server with the same \`myid\`.
- \`cannot listen for followers at …: EADDRINUSE\`: the same; until then it votes and follows, but [does not lead](zab.md#when-a-server-decides).
- \`…: EADDRNOTAVAIL\`: correct the address or \`myid\`; behind a translated address set \`quorumListenOnAllIPs=true\`.
- \`refused: on the election port: it claims to be server 1, which is this one\`: two servers have one \`myid\`; the address tells the other one.
- \`server 3 follows a membership that differs from this one's\`: make the lists alike, restart those that were wrong.
- \`the leader is of epoch 6, but this server has accepted epoch 50\`, again and again, or \`is sent a snapshot of … in place of txns that this leader does not know\`: its directory is of another ensemble, or the others'
  are older copies: [what to do](zab.md#a-server-that-stays-out).

A directory of another ensemble with a later zxid *wins* the next election, and its znodes replace the others': start a new member with an empty directory.

## Keys that take effect
`;

/** The same about other ports. */
function findTwins(key: Key): readonly Key[] {
  if (!key.name.startsWith(CLIENTS) || key.name.startsWith('ssl.quorum.')) return [];
  return OTHERS.flatMap((prefix) => {
    const twin = KEYS.find((other) => other.name === prefix + key.name.slice(CLIENTS.length));
    const isSame =
      twin !== undefined &&
      twin.default === key.default &&
      twin.expected === key.expected &&
      twin.meaning.replaceAll(prefix, CLIENTS) === key.meaning;
    return isSame ? [twin] : [];
  });
}

function isSaidOfClients(key: Key): boolean {
  return KEYS.some((other) => findTwins(other).includes(key));
}

/** The default, then its unit or what else a key takes; a default of true, false, yes or no says both. */
function formatValues({ default: byDefault, expected }: Key): string {
  if (byDefault === '') return formatExpected(expected);
  if (['true or false', 'yes or no'].includes(expected)) return formatCode(byDefault);
  const others = expected.split(' or ').filter((value) => value !== byDefault);
  const rest = formatExpected(others.join(' or '));
  const isUnit = /^(?:ms|KiB|ticks|bytes|hours)\b/.test(rest) && /^\S+$/.test(byDefault);
  return `${formatCode(byDefault)}${rest === '' ? '' : `${isUnit ? '' : ';'} ${rest}`}`;
}

/** Keys that differ in their names alone are one entry. */
function formatList(keys: readonly (readonly string[])[]): string {
  const names = new Map<string, string[]>();
  for (const [name = '', values = '', meaning = ''] of keys) {
    const said = `${values === '' ? '' : ` (${values})`}: ${meaning}`;
    names.set(said, [...(names.get(said) ?? []), formatCode(name)]);
  }
  return [...names].map(([said, some]) => `- ${some.join(', ')}${said}\n`).join('');
}

/** What is expected, shorter than an error message says it: bounds of numbers are left to that message. */
function formatExpected(text: string): string {
  return text
    .replace(/^a whole number from \S+ to \S+/, '')
    .replace(/^ \((ms|KiB|ticks|bytes)\b[^)]*\)/, '$1')
    .replace(', decimal or as 0x…', '')
    .replace('a number of hours, or a number with ms, s, m, h or d behind it', 'hours, or with ms, s, m, h, d')
    .replace('words with commas between them, or *', '`a,b` or `*`')
    .replace('a host name or an address', 'host')
    .replace(/^(a \w+) such as .*/, '$1')
    .replace(/^the name of a hash: .*/, '')
    .replace(/^names of cipher suites with commas .*/, 'names `a,b`')
    .replace(/^(the path of a module, or the name of a class), but .*/, '$1')
    .replace(/^JKS, PEM or PKCS12 .*/, '')
    .replace(/^rules that begin with .*/, 'rules')
    .replace(/^name\/host or name\/_HOST, .*/, '')
    .replace(/^the subject of a certificate, as (.*)/, '')
    .replace(/^org\.apache\.\S+ or \S+$/, '')
    .replace(/^TLSv1.2, TLSv1.3, or both .*/, '')
    .replace(/^false: .*/, '')
    .replace(/^a number$/, '')
    .replace(/^the path of a (\w+)$/, '$1')
    .replace(/^an? (\w+)$/, '$1');
}

function formatCode(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}
