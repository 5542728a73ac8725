import { type Acl, formatPerms } from '@meerkat/client';
import type { TxnRecord } from '@meerkat/server/archive';
import type { Cell } from '../output/column.ts';
import { textOf } from '../value/value-kind.ts';
import { valueRecord } from '../value/value-record.ts';

/** Characters of data that a line shows. */
const DATA_LENGTH = 60;

/** What a txn does, in a line: `setData /app/config "on" version 4`. */
export function describeRecord(record: TxnRecord): string {
  const { type, path, data, acl, isEphemeral, ttl, version, timeoutMs, paths, error, parts } = record;
  const words: string[] = [type];
  if (path !== undefined) words.push(path);
  if (data !== undefined) words.push(describeData(data));
  if (acl !== undefined) words.push(describeAcl(acl));
  if (isEphemeral === true) words.push('ephemeral');
  if (ttl !== undefined) words.push(`ttl ${ttl} ms`);
  if (version !== undefined) words.push(`version ${version}`);
  if (timeoutMs !== undefined) words.push(`timeout ${timeoutMs} ms`);
  if (paths !== undefined && paths !== null && paths.length > 0) words.push(`deletes ${paths.join(' ')}`);
  if (error !== undefined) words.push(error);
  if (parts !== undefined) words.push(`[${parts.map(describeRecord).join('; ')}]`);
  return words.join(' ');
}

export function describeData(data: Uint8Array | null): string {
  if (data === null) return 'no data';
  const text = textOf(data);
  if (text === null) {
    const hex = Buffer.from(data.buffer, data.byteOffset, Math.min(data.length, DATA_LENGTH / 2)).toString('hex');
    return `0x${hex}${data.length > DATA_LENGTH / 2 ? `… (${data.length} bytes)` : ''}`;
  }
  const shown = JSON.stringify(text.slice(0, DATA_LENGTH));
  return text.length > DATA_LENGTH ? `${shown}… (${data.length} bytes)` : shown;
}

export function describeAcl(acl: readonly Acl[]): string {
  return acl.map((entry) => `${entry.scheme}:${entry.id}:${formatPerms(entry.perms)}`).join(',');
}

/** The same for programs: data are text or base64, as everywhere. */
export function recordCell(record: TxnRecord): Record<string, Cell> {
  const { data, acl, parts, paths, ...rest } = record;
  return {
    ...rest,
    ...(data === undefined ? {} : data === null ? { data: null, encoding: null } : valueRecord(data)),
    ...(acl === undefined ? {} : { acl: describeAcl(acl) }),
    ...(paths === undefined ? {} : { paths }),
    ...(parts === undefined ? {} : { parts: parts.map(recordCell) }),
  };
}

/** Whether a txn, or a part of it, is about a znode at or below a path. */
export function touches(record: TxnRecord, path: string): boolean {
  const isBelow = (other: string): boolean => path === '/' || other === path || other.startsWith(`${path}/`);
  if (record.path !== undefined && isBelow(record.path)) return true;
  if (record.paths?.some(isBelow) === true) return true;
  return record.parts?.some((part) => touches(part, path)) === true;
}
