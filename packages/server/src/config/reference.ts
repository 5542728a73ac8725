import type { Key, Tier } from './key.ts';
import { KEYS } from './keys.ts';

const TIERS: readonly { readonly tier: Tier; readonly title: string; readonly text: string }[] = [
  { tier: 'supported', title: 'Keys that take effect', text: '' },
  {
    tier: 'accepted',
    title: 'Keys that are accepted',
    text: 'Their values are checked, and they have nothing to decide in a server on its own.',
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
- One \`server.N\` line is a server on its own, as in ZooKeeper; several are an ensemble, which this version refuses.
- Numbers below the least that makes sense (\`snapCount\`, \`autopurge.snapRetainCount\`) are raised with a warning, as in ZooKeeper.
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
