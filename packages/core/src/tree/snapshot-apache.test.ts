import { readFileSync } from 'node:fs';
import { JuteReader, JuteWriter, readStat } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { ZnodeKind } from './data-tree.ts';
import { Database } from './database.ts';
import { SnapshotReader } from './snapshot-reader.ts';

/** What a client of Apache's server saw; see fixtures/README.md. */
type SeenZnodes = Record<string, { data: string; stat: (number | string)[]; acl: [number, string, string][] }>;

const FILE = new Uint8Array(readFileSync(new URL('fixtures/apache-3.8.0.snapshot', import.meta.url)));
const SEEN = JSON.parse(
  readFileSync(new URL('fixtures/apache-3.8.0.znodes.json', import.meta.url), 'utf8'),
) as SeenZnodes;
/** int magic, int version, long dbid. */
const FILE_HEADER_BYTES = 16;
/** After the body: seal (13 bytes), then long zxid, int version, long digest. */
const DIGEST_OFFSET = 13 + 12;

function load(extendedTypesEnabled: boolean, pieceBytes: number): { database: Database; bodyEnd: number } {
  const database = new Database({ extendedTypesEnabled, digestEnabled: true }, { emit() {} });
  const reader = new SnapshotReader(database);
  let at = FILE_HEADER_BYTES;
  for (let end = at; !reader.isComplete && end < FILE.length; ) {
    end = Math.min(end + pieceBytes, FILE.length);
    at += reader.read(FILE, at, end);
    expect(reader.fault).toBeNull();
  }
  expect(reader.isComplete).toBe(true);
  return { database, bodyEnd: at };
}

describe('a snapshot of Apache 3.8.0', () => {
  it('reads into the znodes that a client of that server saw, data, stat and ACL', () => {
    const { tree } = load(true, FILE.length).database;
    for (const [path, seen] of Object.entries(SEEN)) {
      const z = tree.znodes.find(path);
      const writer = new JuteWriter();
      tree.writeStat(z, writer);
      const stat = readStat(new JuteReader(writer.toBytes()));
      expect([path, Buffer.from(tree.dataOf(z) ?? []).toString('hex')]).toEqual([path, seen.data]);
      expect(Object.values({ ...stat, ephemeralOwner: String(stat.ephemeralOwner) })).toEqual(seen.stat);
      const acl = tree.acls.get(tree.znodes.aclOf(z)).map(({ perms, scheme, id }) => [perms, scheme, id]);
      expect(acl).toEqual(seen.acl);
    }
    // Apache counts the root twice.
    expect(tree.count).toBe(Object.keys(SEEN).length + 1);
  });

  it('has the tree digest that the server wrote after the znodes', () => {
    const { database, bodyEnd } = load(true, FILE.length);
    const reader = new JuteReader(FILE);
    reader.position = bodyEnd + DIGEST_OFFSET;
    const written = reader.longBig();
    expect(database.tree.treeDigest()).toBe(written);
  });

  it('reads the same as a whole or a few bytes at a time', () => {
    const whole = load(true, FILE.length).database;
    const pieces = load(true, 7).database;
    expect(pieces.tree.treeDigest()).toBe(whole.tree.treeDigest());
    expect(pieces.tree.count).toBe(whole.tree.count);
    expect([...pieces.sessions]).toEqual([...whole.sessions]);
  });

  it('restores sessions, ephemerals, containers, TTLs and quotas', () => {
    const { sessions, tree } = load(true, FILE.length).database;
    const [[sessionId, timeoutMs]] = [...sessions] as [[bigint, number]];
    expect(timeoutMs).toBe(30_000);
    expect(tree.ephemeralsOf(sessionId)).toEqual(['/app/eph']);
    expect(tree.znodes.kindOf(tree.znodes.find('/app/container'))).toBe(ZnodeKind.container);
    expect(tree.ttlOf(tree.znodes.find('/app/ttl'))).toBe(3_600_000);
    expect(tree.znodes.sequenceOf(tree.znodes.find('/app'))).toBe(16);
    expect(tree.quotas.check('/app/new', 6000, 1)).toEqual({ path: '/app', limit: 'bytes' });
    expect(tree.quotas.check('/app/new', 1, 1)).toBe('ok');
  });

  it('reads a TTL znode as the ephemeral of an unknown session where extended types are off', () => {
    const { sessions, tree } = load(false, FILE.length).database;
    const strangers = [...tree.sessionsWithEphemerals()].filter((id) => !sessions.has(id));
    expect(strangers.map((id) => tree.ephemeralsOf(id))).toEqual([['/app/ttl']]);
    expect(tree.treeDigest()).toBe(load(true, FILE.length).database.tree.treeDigest());
  });
});
