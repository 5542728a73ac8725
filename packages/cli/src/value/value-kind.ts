import { gunzipSync } from 'node:zlib';

/** What the data of a znode seem to be. Looked at, never known: ZooKeeper keeps bytes. */
export type ValueKind = 'empty' | 'gzip' | 'json' | 'text' | 'binary';

/** Data longer than this are not unpacked to be looked at. Bytes. */
const UNPACKED_BYTES_MAX = 64 * 1024 * 1024;

export function kindOf(data: Uint8Array): ValueKind {
  if (data.length === 0) return 'empty';
  if (data[0] === 0x1f && data[1] === 0x8b && unpack(data) !== null) return 'gzip';
  const text = textOf(data);
  if (text === null) return 'binary';
  return jsonOf(text) === null ? 'text' : 'json';
}

/** @returns null when it is no gzip, or too long */
export function unpack(data: Uint8Array): Uint8Array | null {
  try {
    return gunzipSync(data, { maxOutputLength: UNPACKED_BYTES_MAX });
  } catch {
    return null;
  }
}

/**
 * Tab, line feed and carriage return belong to text. Data with any other control character are bytes: an escape sequence
 * in a znode would otherwise control the terminal of its reader.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const NOT_TEXT = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/;

/** @returns null when the bytes are no UTF-8, or no text */
export function textOf(data: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
    return NOT_TEXT.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** @returns an object or array; null for everything else: a lone number or word is text to people */
export function jsonOf(text: string): object | null {
  const first = text.trimStart()[0];
  if (first !== '{' && first !== '[') return null;
  try {
    return JSON.parse(text) as object;
  } catch {
    return null;
  }
}
