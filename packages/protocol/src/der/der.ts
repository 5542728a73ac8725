/**
 * DER as certificates use it (ITU-T X.690): a tag of one byte, a definite length, contents.
 *
 *     value := tag length contents
 *     length := 0 … 127 | 0x80 + n, then n bytes, the highest first
 */
export interface DerValue {
  readonly tag: number;
  readonly contents: Uint8Array;
  /** Tag and length included. */
  readonly bytes: Uint8Array;
}

export const DerTag = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Invalid DER, or an unexpected value. */
export class DerError extends Error {
  override readonly name = 'DerError';
}

/** The consecutive values in `bytes`. @throws DerError */
export function readDerValues(bytes: Uint8Array): DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length; ) {
    const value = readAt(bytes, at);
    values.push(value);
    at += value.bytes.length;
  }
  return values;
}

/** The first value of `bytes`, which must have this tag if one is given. @throws DerError */
export function readDer(bytes: Uint8Array, tag?: number): DerValue {
  const value = readAt(bytes, 0);
  if (tag !== undefined && value.tag !== tag) {
    throw new DerError(`found tag 0x${value.tag.toString(16)}, expected 0x${tag.toString(16)}`);
  }
  return value;
}

/** `1.2.840.113549` */
export function formatObjectIdentifier({ contents }: DerValue): string {
  const parts: number[] = [];
  let part = 0;
  for (const byte of contents) {
    part = part * 128 + (byte & 0x7f);
    if (byte >= 0x80) continue;
    if (parts.length === 0) {
      const first = Math.min(Math.floor(part / 40), 2);
      parts.push(first, part - first * 40);
    } else {
      parts.push(part);
    }
    part = 0;
  }
  return parts.join('.');
}

function readAt(bytes: Uint8Array, at: number): DerValue {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined)
    throw new DerError(`a value ends at byte ${bytes.length}, inside its header`);
  if ((tag & 0x1f) === 0x1f) throw new DerError(`tag 0x${tag.toString(16)} has more than one byte`);
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (first === 0x80 || lengthBytes > 4)
    throw new DerError(`length 0x${first.toString(16)} is not definite, or too long`);
  let length = first < 0x80 ? first : 0;
  for (let i = 0; i < lengthBytes; i++) length = length * 256 + (bytes[at + 2 + i] ?? 0);
  const start = at + 2 + lengthBytes;
  const end = start + length;
  if (end > bytes.length)
    throw new DerError(`a value of ${length} bytes ends behind the ${bytes.length} that there are`);
  return { tag, contents: bytes.subarray(start, end), bytes: bytes.subarray(at, end) };
}
