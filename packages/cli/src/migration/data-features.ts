import { openFile, scanSnapshot } from '@meerkat/server/archive';
import { kindOfOwner, type ZnodeKind } from '../archive/znode-kind.ts';
import { byteCount, count } from '../output/stat-columns.ts';
import type { MigrationNote } from './migration-note.ts';

/** What the data of a snapshot make use of. */
export interface DataFeatures {
  readonly znodes: number;
  readonly bytes: number;
  readonly kinds: Readonly<Record<ZnodeKind, number>>;
  /** Entries of ACLs by their scheme, but for world. */
  readonly schemes: ReadonlyMap<string, number>;
  readonly largest: { readonly path: string; readonly bytes: number };
  readonly mostChildren: { readonly path: string; readonly count: number };
  readonly sessions: number;
}

/** @throws ArchiveError when the snapshot is damaged */
export async function readFeatures(path: string, signal: AbortSignal): Promise<DataFeatures> {
  await using file = await openFile(path);
  const kinds = { persistent: 0, ephemeral: 0, container: 0, ttl: 0 };
  const schemes = new Map<string, number>();
  const children = new Map<string, number>();
  let [znodes, bytes] = [0, 0];
  let largest = { path: '/', bytes: 0 };
  const { sessions } = await scanSnapshot(
    file,
    {
      onZnode: ({ path: at, data, acl, ephemeralOwner }) => {
        const length = data?.length ?? 0;
        znodes++;
        bytes += length;
        kinds[kindOfOwner(ephemeralOwner)]++;
        if (length > largest.bytes) largest = { path: at, bytes: length };
        const parent = at.slice(0, Math.max(1, at.lastIndexOf('/')));
        if (at !== '/') children.set(parent, (children.get(parent) ?? 0) + 1);
        for (const { scheme } of acl ?? []) {
          if (scheme !== null && scheme !== 'world') schemes.set(scheme, (schemes.get(scheme) ?? 0) + 1);
        }
      },
    },
    signal,
  );
  let mostChildren = { path: '/', count: 0 };
  for (const [at, found] of children) if (found > mostChildren.count) mostChildren = { path: at, count: found };
  return { znodes, bytes, kinds, schemes, largest, mostChildren, sessions };
}

/** What is to be known of them before servers are replaced. */
export function describeFeatures(
  { znodes, bytes, kinds, schemes, largest, mostChildren, sessions }: DataFeatures,
  where: string,
): MigrationNote[] {
  const notes: MigrationNote[] = [];
  const note = (level: MigrationNote['level'], text: string): void => void notes.push({ level, where, text });
  note(
    'fact',
    `${some(znodes, 'znode')} of ${byteCount(bytes)}, ${count(kinds.ephemeral)} of them ephemeral, ${some(sessions, 'session')}; the largest is ` +
      `${largest.path} (${byteCount(largest.bytes)}), the widest ${mostChildren.path} (children: ${count(mostChildren.count)})`,
  );
  if (kinds.container > 0) note('fact', `${some(kinds.container, 'container')}: deleted when empty, as with Apache's`);
  if (kinds.ttl > 0)
    note(
      'change',
      `${some(kinds.ttl, 'znode')} with a TTL: every server needs extendedTypesEnabled=true (-Dzookeeper.extendedTypesEnabled=true counts), or deletes ` +
        'them at its start as ephemerals of unknown sessions, as Apache’s do',
    );
  const named = [...schemes].map(([scheme, entries]) => `${scheme} (entries: ${count(entries)})`);
  if (named.length > 0) note('fact', `ACLs name the schemes ${named.join(', ')}`);
  for (const [scheme, entries] of schemes) {
    const need = NEEDS[scheme];
    if (need === undefined)
      note(
        'stop',
        `${some(entries, 'entry', 'entries')} of ACLs with the scheme ${scheme}, which no server of Meerkat has by itself: authProvider.N names a module for it`,
      );
    else if (need !== null) note('change', `ACLs of the scheme ${scheme}: ${need}`);
  }
  if (largest.bytes > FRAME_BYTES_MAX)
    note(
      'change',
      `${largest.path} has ${byteCount(largest.bytes)}: jute.maxbuffer has to be as large as it is now at servers and clients`,
    );
  return notes;
}

/** What a scheme of ACLs wants of the configuration; null: nothing. */
const NEEDS: Readonly<Record<string, string | null>> = {
  auth: null,
  digest: null,
  ip: null,
  super: null,
  sasl: 'authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider and the JAAS file are read as they are',
  x509: 'clients have to come over TLS, with the same stores',
  key: 'authProvider.N=org.apache.zookeeper.server.auth.KeyAuthenticationProvider is needed',
  ensemble: 'authProvider.N=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider is needed',
};

/** The default of jute.maxbuffer. */
const FRAME_BYTES_MAX = 0xfffff;

function some(found: number, one: string, more = `${one}s`): string {
  return `${count(found)} ${found === 1 ? one : more}`;
}
