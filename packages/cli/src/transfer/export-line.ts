import * as v from 'valibot';
import type { TreeEntry } from '../copy/tree-entry.ts';
import { hex, isoTime } from '../output/stat-columns.ts';
import { valueRecord } from '../value/value-record.ts';
import { ACL, aclOf, aclRecord, describeIssue, describePathFault, KIND, TTL_MS } from './znode-fields.ts';

/*
 * The lines of an export, each a JSON object:
 *
 *     file   = header znode* end
 *     header = {"meerkatExport": 1, "root": "/app", "source": "127.0.0.1:2181", "zxid": "0x…", "time": "2026-…Z"}
 *     znode  = {"path": "/a/b", "data": "on", "encoding": "utf8", "acl": [{"perms", "scheme", "id"}],
 *               "kind": "persistent", "stat": {…}}
 *     end    = {"end": true, "znodes": 3, "zxid": "0x…"}
 *
 * Paths begin at the root: "/" is the root itself. Znodes stand in tree order. The zxids are those of the service before
 * the first and behind the last znode was read: a change with a zxid in between is in the file or is not. `data` is null
 * for a znode that holds nothing, which is not the same as empty. `source`, `zxid`, `time` and `stat` are told to people;
 * of `stat` only `mtime` is read. A znode without `acl` gets one that is open to anyone, when it is created.
 */
export const EXPORT_VERSION = 1;

export interface ExportHeader {
  /** Where the tree was; absolute. */
  readonly root: string;
  /** host:port of the server that was read from; null: not said. */
  readonly source: string | null;
}

/** Where and when a tree was read. */
export interface ExportOrigin {
  readonly source: string;
  readonly zxid: bigint;
  readonly timeMs: number;
}

/** @param origin null when nothing may stand in the file that another time would be another */
export function headerLine(root: string, origin: ExportOrigin | null): string {
  const sourceFields =
    origin === null ? {} : { source: origin.source, zxid: hex(origin.zxid), time: isoTime(origin.timeMs) };
  return JSON.stringify({ meerkatExport: EXPORT_VERSION, root, ...sourceFields });
}

export function endLine(znodes: number, zxid: bigint | null): string {
  return JSON.stringify({ end: true, znodes, ...(zxid === null ? {} : { zxid: hex(zxid) }) });
}

export function znodeLine(entry: TreeEntry, withStat: boolean): string {
  const { path, data, acl, kind, ttlMs, stat } = entry;
  return JSON.stringify({
    path,
    ...(data === null ? { data: null } : valueRecord(data)),
    ...(acl === null ? {} : { acl: acl.map(aclRecord) }),
    kind,
    ...(ttlMs === null ? {} : { ttlMs }),
    ...(withStat && stat !== null ? { stat: statRecord(stat) } : {}),
  });
}

function statRecord(stat: NonNullable<TreeEntry['stat']>): object {
  const { czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner } = stat;
  return {
    czxid: hex(czxid),
    mzxid: hex(mzxid),
    pzxid: hex(pzxid),
    ctime: isoTime(ctime),
    mtime: isoTime(mtime),
    version,
    cversion,
    aversion,
    ephemeralOwner: hex(ephemeralOwner),
  };
}

const ZNODE = v.strictObject({
  path: v.string(),
  data: v.nullable(v.string()),
  encoding: v.optional(v.picklist(['utf8', 'base64']), 'utf8'),
  acl: v.optional(ACL),
  kind: v.optional(KIND, 'persistent'),
  ttlMs: v.optional(TTL_MS),
  stat: v.optional(v.looseObject({ mtime: v.optional(v.nullable(v.string())) })),
});
const HEADER = v.looseObject({
  meerkatExport: v.literal(EXPORT_VERSION),
  root: v.string(),
  source: v.optional(v.string()),
});
const END = v.looseObject({ end: v.literal(true), znodes: v.number() });

/** What a line turned out to be. `fault` says what is wrong with it. */
export type ExportLine =
  | { readonly kind: 'header'; readonly header: ExportHeader }
  | { readonly kind: 'znode'; readonly entry: TreeEntry }
  | { readonly kind: 'end'; readonly znodes: number }
  | { readonly kind: 'fault'; readonly fault: string };

export function parseExportLine(line: string): ExportLine {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    return fault(`it is no JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fault('it is no JSON object');
  if ('meerkatExport' in value) return parseHeader(value);
  return 'end' in value ? parseEnd(value) : parseZnode(value);
}

function parseHeader(value: object): ExportLine {
  const parsed = v.safeParse(HEADER, value);
  if (!parsed.success) return fault(describeIssue(parsed.issues[0]));
  const { root, source = null } = parsed.output;
  const pathFault = describePathFault(root);
  return pathFault === null ? { kind: 'header', header: { root, source } } : fault(`root: ${pathFault}`);
}

function parseEnd(value: object): ExportLine {
  const parsed = v.safeParse(END, value);
  return parsed.success ? { kind: 'end', znodes: parsed.output.znodes } : fault(describeIssue(parsed.issues[0]));
}

function parseZnode(value: object): ExportLine {
  const parsed = v.safeParse(ZNODE, value);
  if (!parsed.success) return fault(describeIssue(parsed.issues[0]));
  const { path, data: text, encoding, acl, kind, ttlMs = null, stat } = parsed.output;
  const pathFault = describePathFault(path);
  if (pathFault !== null) return fault(`path: ${pathFault}`);
  if ((kind === 'ttl') !== (ttlMs !== null)) return fault('ttlMs goes with the kind "ttl", and with no other');
  const data = text === null ? null : decode(text, encoding);
  if (text !== null && data === null) return fault('data: it is no base64');
  const mtime = stat?.mtime == null ? null : Date.parse(stat.mtime);
  if (Number.isNaN(mtime)) return fault('stat.mtime: it is no time');
  return { kind: 'znode', entry: { path, data, acl: acl?.map(aclOf) ?? null, kind, ttlMs, mtime, stat: null } };
}

function decode(text: string, encoding: 'utf8' | 'base64'): Uint8Array | null {
  const data = Buffer.from(text, encoding);
  // Node skips what is no base64.
  return encoding === 'utf8' || data.toString('base64') === text ? data : null;
}

function fault(text: string): ExportLine {
  return { kind: 'fault', fault: text };
}
