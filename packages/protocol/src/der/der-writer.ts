import { DerTag } from './der.ts';

/** A DER value: see `der.ts`. */
export function writeDer(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const length = contents.reduce((sum, part) => sum + part.length, 0);
  const header = length < 0x80 ? [tag, length] : [tag, 0x80 + bytesOf(length).length, ...bytesOf(length)];
  const value = new Uint8Array(header.length + length);
  value.set(header);
  let at = header.length;
  for (const part of contents) {
    value.set(part, at);
    at += part.length;
  }
  return value;
}

export function sequence(...contents: readonly Uint8Array[]): Uint8Array {
  return writeDer(DerTag.sequence, ...contents);
}

export function objectIdentifier(text: string): Uint8Array {
  const [first = 0, second = 0, ...others] = text.split('.').map(Number);
  const bytes = [first * 40 + second, ...others].flatMap((part) => {
    const groups = [part & 0x7f];
    for (let left = Math.floor(part / 128); left > 0; left = Math.floor(left / 128))
      groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return writeDer(DerTag.objectIdentifier, Uint8Array.from(bytes));
}

/** A non-negative integer from its bytes, most significant first. */
export function unsigned(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const digits = bytes.subarray(start);
  const isNegative = (digits[0] ?? 0) >= 0x80;
  return writeDer(DerTag.integer, ...(isNegative ? [Uint8Array.of(0)] : []), digits);
}

export function utf8String(text: string): Uint8Array {
  return writeDer(DerTag.utf8String, new TextEncoder().encode(text));
}

function bytesOf(value: number): number[] {
  const bytes: number[] = [];
  for (let left = value; left > 0; left = Math.floor(left / 256)) bytes.unshift(left % 256);
  return bytes;
}
