import type { Key, Tier } from './key.ts';
import { KEYS } from './keys.ts';

const TIERS: readonly { readonly tier: Tier; readonly title: string; readonly text: string }[] = [
  { tier: 'supported', title: 'Keys that take effect', text: '' },
  {
    tier: 'accepted',
    title: 'Keys that are accepted',
    text: 'Their values are checked, and they have nothing to decide here.',
  },
  {
    tier: 'later',
    title: 'Keys that are not supported yet',
    text: 'Each is warned about, unless its value asks for nothing (the column "silent").',
  },
  {
    tier: 'security',
    title: 'Keys about security that are not supported yet',
    text: 'Each stops the start, unless its value asks for nothing: nobody runs less safe than the file says.',
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

<!-- Made from the tables in packages/server/src/config; "npx vitest run packages/server/src/config -u" writes it anew. -->

A server reads a ZooKeeper configuration file: \`meerkat server path/to/zoo.cfg\`. The smallest one is

\`\`\`properties
dataDir=/var/lib/meerkat
clientPort=2181
\`\`\`

The file is a Java properties file in UTF-8. What Apache ZooKeeper takes as a Java system property stands in this file too, with
or without \`zookeeper.\` before its name. Of several lines with one key the last one counts.

- An unknown key, and a known one that this version does not have yet, is warned about with its line.
- A value that cannot be used stops the start with file, line, key, what was found and what is expected, and exit code 2.
- A key about security that this version does not have yet stops the start too.
- One \`server.N\` line is a server on its own, as in ZooKeeper; several are an ensemble.
- Numbers below the least that makes sense (\`snapCount\`, \`autopurge.snapRetainCount\`) are raised with a warning, as in ZooKeeper.

## An ensemble

The file is the same on every server. Which of the members a server is says the file \`myid\` in its data directory: the number
alone.

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

The first port is for the followers of a leader, the second one for elections. Behind them may stand \`:observer\`, and behind a
semicolon where clients connect. Names are resolved anew for each connection. Servers of Apache ZooKeeper can be members too.

What contradicts itself stops the start with file, line and reason: a \`myid\` that is missing, no number or not in the list, an
address that two members claim, limits that are missing, observers of a single participant. An even number of voters is warned about.

### When it does not come together

What only shows between servers is in their logs. One that looks for a leader says every ten seconds whom it reaches.

| the log says | what to do |
| --- | --- |
| \`without a connection: 3 (nobody listens at …)\` | start server 3; if it runs, compare the lines \`server.3\` of both |
| \`(the name … is not known)\`, \`(nothing answers at …)\` | look at the name service, the network, the firewall |
| \`cannot listen for the election at …: EADDRINUSE\` | stop what listens there; two servers with one \`myid\` on one machine are in each other's way too |
| \`…: EADDRNOTAVAIL\` | the list has another machine's address for this \`myid\`: correct one of them. Behind a translated address set \`quorumListenOnAllIPs=true\` |
| \`refused: on the election port: it says that it is server 1, which is this one\` | two servers have one \`myid\`: the address tells the other one |
| \`server 3 follows a membership that differs from this one's\` | make the lists alike, and restart the servers whose list was wrong |
| \`the leader is of epoch 6, but this server has accepted epoch 50\`, again and again | this directory has seen leaders that the others have not: it is another ensemble's, or the others' were restored from older copies. If it is this one that is wrong, stop the server, set \`version-2\` aside and start it: the leader sends it everything |
| \`is sent a snapshot of … in place of txns that this leader does not know\` | the same, and what only that server had is gone from it |

No file says which ensemble a directory belongs to. A directory of another ensemble whose zxid is ahead *wins* the next election
in which it takes part, and then the others get its znodes in place of their own: a new member begins with an empty directory.
`;

function formatSupported(keys: readonly Key[]): string {
  return formatTable(
    ['key', 'default', 'value', 'meaning'],
    keys.map((key) => [`\`${key.name}\``, formatCode(key.default), key.expected, key.meaning]),
  );
}

function formatAccepted(keys: readonly Key[]): string {
  return formatTable(
    ['key', 'value', 'meaning'],
    keys.map((key) => [`\`${key.name}\``, key.expected, key.meaning]),
  );
}

function formatMissing(keys: readonly Key[]): string {
  return formatTable(
    ['key', 'silent', 'meaning'],
    keys.map((key) => [`\`${key.name}\``, key.harmless.map(formatCode).join(' '), key.meaning]),
  );
}

function formatCode(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, header.map(() => '---'), ...rows];
  return `${lines.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`).join('\n')}\n`;
}
