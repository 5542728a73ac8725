/**
 * Addresses of IP as bytes and as text.
 *
 * ZooKeeper compares and prints addresses as Java does: a v4 address that arrived mapped into v6 is a v4 address, and a v6
 * address is written as eight groups without `::` (`Inet6Address.getHostAddress`).
 */

/** The 4 or 16 bytes of an address written as text; null when it is not an address. A zone (`%eth0`) is ignored. */
export function parseIp(text: string): Uint8Array | null {
  const length = readIp(text, text.length, SCRATCH);
  return length === 0 ? null : SCRATCH.slice(0, length);
}

/** The text of an address as Java prints it: `127.0.0.1`, `0:0:0:0:0:0:0:1`. */
export function formatIp(ip: Uint8Array): string {
  if (ip.length === 4) return ip.join('.');
  const groups: string[] = [];
  for (let i = 0; i < ip.length; i += 2) groups.push((((ip[i] ?? 0) << 8) | (ip[i + 1] ?? 0)).toString(16));
  return groups.join(':');
}

/** 127.0.0.0/8 and ::1. */
export function isLoopback(ip: Uint8Array): boolean {
  if (ip.length === 4) return ip[0] === 127;
  return ip[15] === 1 && ip.subarray(0, 15).every((byte) => byte === 0);
}

/** An address or a network, `address/bits`, as an ACL names it. One object for one after the other: lists may be long. */
export class IpNetwork {
  readonly #bytes = new Uint8Array(16);
  /** 4 or 16. */
  #length = 0;
  #bits = 0;

  /** @returns false when the text is neither */
  read(text: string): boolean {
    const slash = text.indexOf('/');
    this.#length = readIp(text, slash < 0 ? text.length : slash, this.#bytes);
    if (this.#length === 0) return false;
    const bitsMax = this.#length * 8;
    this.#bits = slash < 0 ? bitsMax : readJavaInt(text, slash + 1, text.length, bitsMax);
    return this.#bits >= 0;
  }

  /** True when the address is of the same family and has the same first bits as what was read. */
  contains(ip: Uint8Array): boolean {
    if (ip.length !== this.#length) return false;
    for (let i = 0, bits = this.#bits; bits > 0; i++, bits -= 8) {
      const mask = bits >= 8 ? 0xff : (0xff << (8 - bits)) & 0xff;
      if (((ip[i]! ^ this.#bytes[i]!) & mask) !== 0) return false;
    }
    return true;
  }
}

const SCRATCH = new Uint8Array(16);

/** Reads the address before `end`. @returns its length in bytes; 0 when it is not an address */
function readIp(text: string, end: number, bytes: Uint8Array): number {
  const colon = text.indexOf(':');
  if (colon < 0 || colon >= end) return readIpv4(text, 0, end, bytes, 0) ? 4 : 0;
  const zone = text.indexOf('%');
  if (!readIpv6(text, zone < 0 || zone > end ? end : zone, bytes)) return 0;
  if (!isMappedIpv4(bytes)) return 16;
  bytes.copyWithin(0, 12, 16);
  return 4;
}

/** Four numbers between dots, as bytes from `at` on. */
function readIpv4(text: string, start: number, end: number, bytes: Uint8Array, at: number): boolean {
  let from = start;
  for (let i = 0; i < 4; i++) {
    const dot = i < 3 ? text.indexOf('.', from) : end;
    if (dot < 0 || dot > end) return false;
    const byte = readJavaInt(text, from, dot, 255);
    if (byte < 0) return false;
    bytes[at + i] = byte;
    from = dot + 1;
  }
  return true;
}

/** Groups between colons, of which `::` stands for one or more; the last one on either side of it may be a v4 address. */
function readIpv6(text: string, end: number, bytes: Uint8Array): boolean {
  let length = 0;
  /** Where the bytes are that `::` stands for; −1 without one. */
  let gap = -1;
  let from = 0;
  if (text.startsWith('::') && end >= 2) {
    gap = 0;
    from = 2;
  }
  while (gap < 0 || from < end) {
    const colon = text.indexOf(':', from);
    const groupEnd = colon < 0 || colon > end ? end : colon;
    const isDouble = groupEnd + 1 < end && text.charCodeAt(groupEnd + 1) === COLON;
    const group = readGroup(text, from, groupEnd);
    if (group >= 0 && length + 2 <= 16) {
      bytes[length++] = group >> 8;
      bytes[length++] = group & 0xff;
    } else if (length + 4 <= 16 && (groupEnd === end || isDouble) && readIpv4(text, from, groupEnd, bytes, length)) {
      length += 4;
    } else {
      return false;
    }
    if (groupEnd === end) break;
    if (isDouble) {
      if (gap >= 0) return false;
      gap = length;
    } else if (groupEnd + 1 === end) {
      return false;
    }
    from = groupEnd + (isDouble ? 2 : 1);
  }
  if (gap < 0) return length === 16;
  if (length > 14) return false;
  bytes.copyWithin(16 - (length - gap), gap, length);
  bytes.fill(0, gap, 16 - (length - gap));
  return true;
}

/** One to four hexadecimal digits. @returns −1 for anything else */
function readGroup(text: string, start: number, end: number): number {
  if (end <= start || end - start > 4) return -1;
  let value = 0;
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i);
    const lower = code | 0x20;
    if (code >= ZERO && code <= NINE) value = value * 16 + code - ZERO;
    else if (lower >= SMALL_A && lower <= SMALL_F) value = value * 16 + lower - SMALL_A + 10;
    else return -1;
  }
  return value;
}

function isMappedIpv4(ip: Uint8Array): boolean {
  if (ip[10] !== 0xff || ip[11] !== 0xff) return false;
  for (let i = 0; i < 10; i++) if (ip[i] !== 0) return false;
  return true;
}

/**
 * A number as Java's Integer.parseInt reads it, as far as it is written in ASCII: a sign and any number of leading zeros
 * are fine, and "-0" is zero. ACLs that Apache's server has accepted say `+8` and `008`, and mean 8 here too.
 *
 * @returns −1 when the text is no number from 0 to `max`
 */
function readJavaInt(text: string, start: number, end: number, max: number): number {
  const sign = text.charCodeAt(start);
  const first = sign === PLUS || sign === MINUS ? start + 1 : start;
  if (first >= end) return -1;
  let value = 0;
  for (let i = first; i < end; i++) {
    const digit = text.charCodeAt(i) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
    if (value > max) return -1;
  }
  return value > 0 && sign === MINUS ? -1 : value;
}

const PLUS = 0x2b;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const SMALL_A = 0x61;
const SMALL_F = 0x66;
