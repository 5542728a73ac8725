import { type Acl, type Client, formatPerms, NoNodeError, parsePerms } from '@meerkat/client';
import { Fields } from './fields.ts';
import { Refusal } from './refusal.ts';
import { readTree, type SavedZnode, writeTree } from './saved-tree.ts';
import type { Call } from './znode-reader.ts';
import { type Change, undoOfImport } from './znode-writer.ts';

/*
 * Trees as files, in the format of "meerkat export" and "meerkat import". See docs/cli/copying.md.
 */

/** A tree without its ephemeral znodes, as lines of JSON. */
export async function exportTree(client: Client, root: string, source: string, call: Call): Promise<string> {
  const tree = await readTree(client, root, { znodesMax: EXPORT_MAX, bytesMax: EXPORT_BYTES_MAX }, call);
  if (tree === null) {
    const text = `${root} has more than ${EXPORT_MAX} znodes or ${EXPORT_BYTES_MAX >> 20} MiB: use "meerkat export"`;
    throw new Refusal(413, 'too-large', text, root);
  }
  const znodes = inTreeOrder(tree.znodes);
  const lines = znodes.map(({ below, data, acl }) =>
    JSON.stringify({
      path: below === '' ? '/' : below,
      ...valueFields(data),
      acl: acl.map((entry) => ({ perms: formatPerms(entry.perms), scheme: entry.scheme ?? '', id: entry.id ?? '' })),
      kind: 'persistent',
    }),
  );
  const header = JSON.stringify({ meerkatExport: 1, root, source, time: new Date().toISOString() });
  return `${[header, ...lines, JSON.stringify({ end: true, znodes: lines.length })].join('\n')}\n`;
}

/** Creates the tree of a file below a path; existing znodes are left unchanged. */
export async function importTree(client: Client, root: string, text: string, call: Call): Promise<Change> {
  const znodes = parseLines(text);
  const made: string[] = [];
  try {
    await writeTree(client, root, parentsFirst(znodes), call, made, true);
    const undo = made.length === 0 ? null : undoOfImport(client, made, call);
    const noUndo = undo === null ? 'everything was there already, and stays as it was' : null;
    return { changed: { path: root, znodes: made.length, undo: undo?.text ?? null, noUndo }, undo };
  } catch (error) {
    if (!(error instanceof NoNodeError)) throw error;
    throw new Refusal(
      409,
      'NONODE',
      `cannot import below ${root}: ${error.path} has no parent there and none in the file`,
    );
  }
}

function parseLines(text: string): SavedZnode[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const values = lines.map((line, i) => {
    try {
      return new Fields(JSON.parse(line));
    } catch (error) {
      throw new Refusal(400, 'bad-file', `line ${i + 1}: it is no JSON (${(error as Error).message})`);
    }
  });
  if (values[0]?.has('meerkatExport') !== true) {
    throw new Refusal(400, 'bad-file', 'line 1: expected {"meerkatExport":1,…}, as "meerkat export" begins a file');
  }
  if (values.length < 2 || values.at(-1)?.has('end') !== true) {
    throw new Refusal(400, 'bad-file', 'the last line, {"end":true,…}, is missing: the file is cut off');
  }
  return values.slice(1, -1).map((fields, i) => {
    try {
      const kind = fields.text('kind', 'persistent');
      if (kind !== 'persistent')
        throw new Refusal(400, 'bad-file', `kind: the console imports persistent znodes, not ${kind}`);
      const path = fields.path();
      return { below: path === '/' ? '' : path, data: readValue(fields), acl: readAcl(fields) };
    } catch (error) {
      throw new Refusal(400, 'bad-file', `line ${i + 2}: ${(error as Error).message}`);
    }
  });
}

function readValue(fields: Fields): Uint8Array | null {
  if (!fields.has('data') || fields.isNull('data')) return null;
  return fields.text('encoding', 'utf8') === 'base64' ? fields.bytes('data') : Buffer.from(fields.text('data'));
}

function readAcl(fields: Fields): readonly Acl[] {
  if (!fields.has('acl')) return [{ perms: 31, scheme: 'world', id: 'anyone' }];
  return fields.list('acl').map((entry) => {
    const of = new Fields(entry);
    return { perms: parsePerms(of.text('perms')), scheme: of.text('scheme'), id: of.text('id', '') };
  });
}

function valueFields(data: Uint8Array | null): object {
  if (data === null) return { data: null };
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes)
    ? { data: text }
    : { data: bytes.toString('base64'), encoding: 'base64' };
}

/** Depth first: each znode before its subtree, and that before its next sibling. */
function inTreeOrder(znodes: readonly SavedZnode[]): SavedZnode[] {
  const key = ({ below }: SavedZnode): string => below.replaceAll('/', '\0');
  return znodes.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}

function parentsFirst(znodes: readonly SavedZnode[]): SavedZnode[] {
  const depth = ({ below }: SavedZnode): number => below.split('/').length;
  return znodes.toSorted((a, b) => depth(a) - depth(b));
}

const EXPORT_MAX = 100_000;
const EXPORT_BYTES_MAX = 64 << 20;
