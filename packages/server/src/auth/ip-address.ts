/**
 * Addresses of IP as bytes and as text.
 *
 * ZooKeeper compares and prints addresses as Java does: a v4 address that arrived mapped into v6 is a v4 address, and a v6
 * address is written as eight groups without `::` (`Inet6Address.getHostAddress`).
 */

/** The 4 or 16 bytes of an address written as text; null when it is none. A zone (`%eth0`) is ignored. */
export function parseIp(text: string): Uint8Array | null {
  if (!text.includes(':')) return parseIpv4(text);
  const zone = text.indexOf('%');
  const bytes = parseIpv6(zone < 0 ? text : text.slice(0, zone));
  return bytes !== null && isMappedIpv4(bytes) ? bytes.slice(12) : bytes;
}

/** The text of an address as Java prints it: `127.0.0.1`, `0:0:0:0:0:0:0:1`. */
export function formatIp(ip: Uint8Array): string {
  if (ip.length === 4) return ip.join('.');
  const groups: string[] = [];
  for (let i = 0; i < ip.length; i += 2) groups.push((((ip[i] ?? 0) << 8) | (ip[i + 1] ?? 0)).toString(16));
  return groups.join(':');
}

/** True when the first `bits` bits of both addresses are the same and they are of one family. */
export function isSameNetwork(left: Uint8Array, right: Uint8Array, bits: number): boolean {
  if (left.length !== right.length) return false;
  for (let i = 0; i < left.length; i++) {
    const bitsHere = Math.min(8, Math.max(0, bits - i * 8));
    const mask = (0xff << (8 - bitsHere)) & 0xff;
    if ((((left[i] ?? 0) ^ (right[i] ?? 0)) & mask) !== 0) return false;
  }
  return true;
}

function parseIpv4(text: string): Uint8Array | null {
  const parts = text.split('.');
  if (parts.length !== 4) return null;
  const bytes = new Uint8Array(4);
  for (const [i, part] of parts.entries()) {
    if (!/^\d{1,9}$/.test(part) || Number(part) > 255) return null;
    bytes[i] = Number(part);
  }
  return bytes;
}

function parseIpv6(text: string): Uint8Array | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const head = parseGroups(halves[0] ?? '');
  const tail = halves.length === 2 ? parseGroups(halves[1] ?? '') : [];
  if (head === null || tail === null) return null;
  const missing = 16 - head.length - tail.length;
  // "::" stands for at least one group; without it all eight must be there.
  if (halves.length === 2 ? missing < 2 : missing !== 0) return null;
  return Uint8Array.from([...head, ...new Array<number>(missing).fill(0), ...tail]);
}

/** The bytes of groups between colons; the last one may be a dotted v4 address. */
function parseGroups(text: string): number[] | null {
  if (text === '') return [];
  const bytes: number[] = [];
  const groups = text.split(':');
  for (const [i, group] of groups.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(group)) {
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
      continue;
    }
    const dotted = i === groups.length - 1 ? parseIpv4(group) : null;
    if (dotted === null) return null;
    bytes.push(...dotted);
  }
  return bytes;
}

function isMappedIpv4(ip: Uint8Array): boolean {
  return ip.length === 16 && ip[10] === 0xff && ip[11] === 0xff && ip.subarray(0, 10).every((byte) => byte === 0);
}
