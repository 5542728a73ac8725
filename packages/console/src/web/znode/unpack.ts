import { describeJavaObject } from './java-object.ts';

/** How a value is displayed. */
export type Format = 'text' | 'json' | 'xml' | 'hex' | 'java';

export interface Unpacked {
  readonly bytes: Uint8Array;
  /** The decoding steps, outermost first. */
  readonly steps: readonly string[];
  readonly format: Format;
  /** For `text`, `json`, `xml` and `java`: the displayed text. */
  readonly text: string;
  /** Why a value that looked compressed is shown unchanged. */
  readonly damage: { readonly kind: string; readonly reason: string } | null;
}

/** Maximum size after decompression: a small value may become a large one. */
const UNPACKED_MAX = 16 << 20;

/** Decompresses a value, and detects its format. */
export async function unpack(bytes: Uint8Array, isSnappy = false): Promise<Unpacked> {
  const steps: string[] = [];
  let inner = bytes;
  for (let depth = 0; depth < 4; depth++) {
    const kind: Packing | null = depth === 0 && isSnappy ? 'snappy' : packingOf(inner);
    if (kind === null) break;
    try {
      inner = await UNPACKERS[kind](inner);
      if (inner.length > UNPACKED_MAX) throw new Error(`it would be more than ${UNPACKED_MAX >> 20} MiB`);
      steps.push(kind);
    } catch (error) {
      return { bytes: inner, steps, format: 'hex', text: '', damage: { kind, reason: (error as Error).message } };
    }
  }
  return { bytes: inner, steps, ...readFormat(inner), damage: null };
}

type Packing = 'gzip' | 'zstd' | 'snappy' | 'snappy (framed)' | 'snappy (Java)';

function packingOf(bytes: Uint8Array): Packing | null {
  const begins = (...magic: readonly number[]): boolean => magic.every((byte, i) => bytes[i] === byte);
  if (begins(0x1f, 0x8b)) return 'gzip';
  if (begins(0x28, 0xb5, 0x2f, 0xfd)) return 'zstd';
  if (begins(0xff, 0x06, 0x00, 0x00, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59)) return 'snappy (framed)';
  if (begins(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00)) return 'snappy (Java)';
  return null;
}

const UNPACKERS: Readonly<Record<Packing, (bytes: Uint8Array) => Promise<Uint8Array>>> = {
  gzip: async (bytes) => {
    const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream('gzip'));
    const chunks: Uint8Array[] = [];
    let length = 0;
    try {
      for (const reader = stream.getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) break;
        length += value.length;
        if (length > UNPACKED_MAX) throw new Error(`it would be more than ${UNPACKED_MAX >> 20} MiB`);
        chunks.push(value);
      }
    } catch (error) {
      // Browsers report only "failed".
      throw error instanceof Error && error.message.startsWith('it would') ? error : new Error('the data is damaged');
    }
    return concat(chunks, length);
  },
  zstd: async (bytes) => (await import('fzstd')).decompress(bytes),
  snappy: async (bytes) => (await import('snappyjs')).uncompress(bytes),
  'snappy (framed)': async (bytes) => {
    const { uncompress } = await import('snappyjs');
    const parts: Uint8Array[] = [];
    for (let at = 0; at + 4 <= bytes.length; ) {
      const kind = bytes[at]!;
      const length = bytes[at + 1]! | (bytes[at + 2]! << 8) | (bytes[at + 3]! << 16);
      // After a checksum of four bytes.
      const body = bytes.subarray(at + 8, at + 4 + length);
      if (kind === 0) parts.push(uncompress(body));
      else if (kind === 1) parts.push(body);
      else if (kind < 0x80) throw new Error(`a chunk is of the unknown kind ${kind}`);
      at += 4 + length;
    }
    return concat(
      parts,
      parts.reduce((sum, { length }) => sum + length, 0),
    );
  },
  'snappy (Java)': async (bytes) => {
    const { uncompress } = await import('snappyjs');
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const parts: Uint8Array[] = [];
    for (let at = 16; at + 4 <= bytes.length; ) {
      const length = view.getInt32(at);
      parts.push(uncompress(bytes.subarray(at + 4, at + 4 + length)));
      at += 4 + length;
    }
    return concat(
      parts,
      parts.reduce((sum, { length }) => sum + length, 0),
    );
  },
};

function concat(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function readFormat(bytes: Uint8Array): { readonly format: Format; readonly text: string } {
  if (bytes[0] === 0xac && bytes[1] === 0xed && bytes[2] === 0 && bytes[3] === 5) {
    return { format: 'java', text: describeJavaObject(bytes) };
  }
  const text = asText(bytes);
  if (text === null) return { format: 'hex', text: '' };
  const trimmed = text.trim();
  if (/^[[{]/.test(trimmed) && jsonFault(trimmed) === null) return { format: 'json', text };
  if (/^<(\?xml|[A-Za-z_!])/.test(trimmed) && trimmed.endsWith('>')) return { format: 'xml', text };
  return { format: 'text', text };
}

/** UTF-8 without control characters; null when it is something else. */
export function asText(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
    return /[\x00-\x08\x0b\x0c\x0e-\x1f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** Why a text is not valid JSON; null when it is. */
export function jsonFault(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Indented; numbers and everything else are unchanged. */
export function prettyJson(text: string): string {
  const parts = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  let depth = 0;
  let made = '';
  for (const [i, part] of parts.entries()) {
    const next = parts[i + 1];
    const line = (by: number): string => `\n${'  '.repeat(Math.max(0, depth + by))}`;
    if (part === '{' || part === '[') {
      const isEmpty = next === '}' || next === ']';
      depth++;
      made += part + (isEmpty ? '' : line(0));
    } else if (part === '}' || part === ']') {
      const before = parts[i - 1];
      depth--;
      made += (before === '{' || before === '[' ? '' : line(0)) + part;
    } else if (part === ',') made += `,${line(0)}`;
    else if (part === ':') made += ': ';
    else made += part;
  }
  return made;
}

export function toBytes(base64: string): Uint8Array {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}
