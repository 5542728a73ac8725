/**
 * Addresses as in the membership and in the hello of the election port: `host:port:port…`, with IPv6 literals in
 * brackets.
 */
export interface HostPort {
  /** A name, or a literal address without brackets. */
  readonly host: string;
  readonly port: number;
}

export const MAX_PORT = 65535;

/** `host:port`, with brackets around an IPv6 literal. */
export function formatHostPort(address: HostPort): string {
  return `${formatHost(address.host)}:${address.port}`;
}

export function formatHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/**
 * The parts between the colons, of which the first is the host; an IPv6 literal is returned in its canonical form.
 * Empty parts at the end are dropped, as in Apache's parser.
 *
 * @returns null when a bracket is not closed
 */
export function splitHostAndPorts(text: string): readonly string[] | null {
  if (!text.startsWith('[')) return splitText(text, ':');
  const end = text.indexOf(']');
  if (end < 0) return null;
  const host = canonicalHost(text.slice(1, end));
  if (end + 1 === text.length) return [host];
  return text[end + 1] === ':' ? [host, ...splitText(text.slice(end + 2), ':')] : null;
}

/** Whether the text may be a host: not empty, without blanks and brackets. */
export function isHost(text: string): boolean {
  return /^[^\s[\]]+$/.test(text);
}

/** The port that decimal text names, 0 included; null when it names none. */
export function parsePort(text: string): number | null {
  if (!/^\d{1,10}$/.test(text)) return null;
  const port = Number(text);
  return port <= MAX_PORT ? port : null;
}

/** The parts between the separators, without the empty ones at the end. */
export function splitText(text: string, separator: string): string[] {
  const parts = text.split(separator);
  while (parts.length > 0 && parts[parts.length - 1] === '') parts.pop();
  return parts;
}

/** Whether the address is the wildcard address, which other hosts cannot connect to. */
export function isWildcardHost(host: string): boolean {
  return host === '0.0.0.0' || canonicalHost(host) === '0:0:0:0:0:0:0:0';
}

/**
 * The host as Apache prints it, so that two spellings of one address are the same text: an IPv6 literal has its eight
 * groups in lower case without leading zeros, an IPv4-mapped one becomes the IPv4 address. Other hosts are unchanged.
 */
export function canonicalHost(host: string): string {
  if (!host.includes(':')) return host;
  const [literal = '', zone] = host.split('%', 2);
  const groups = parseIpv6(literal);
  if (groups === null) return host;
  const [high, low] = [groups[6]!, groups[7]!];
  if (groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return `${high >>> 8}.${high & 0xff}.${low >>> 8}.${low & 0xff}`;
  }
  const text = groups.map((group) => group.toString(16)).join(':');
  return zone === undefined ? text : `${text}%${zone}`;
}

const IPV6_GROUPS = 8;

/** The eight groups; null when the text is no IPv6 literal. */
function parseIpv6(text: string): readonly number[] | null {
  const halves = text.split('::');
  const left = parseGroups(halves[0]!);
  const right = halves.length === 2 ? parseGroups(halves[1]!) : [];
  if (halves.length > 2 || left === null || right === null) return null;
  const missing = IPV6_GROUPS - left.length - right.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  return [...left, ...new Array<number>(missing).fill(0), ...right];
}

/** Groups of up to four hexadecimal digits; the last may be an IPv4 address, which is two of them. */
function parseGroups(text: string): readonly number[] | null {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [i, part] of parts.entries()) {
    const bytes = part.split('.').map(parseByte);
    if (i === parts.length - 1 && bytes.length === 4 && bytes.every((byte) => byte !== null)) {
      groups.push((bytes[0]! << 8) | bytes[1]!, (bytes[2]! << 8) | bytes[3]!);
    } else if (/^[0-9a-f]{1,4}$/i.test(part)) {
      groups.push(Number.parseInt(part, 16));
    } else {
      return null;
    }
  }
  return groups;
}

function parseByte(text: string): number | null {
  if (!/^\d{1,3}$/.test(text)) return null;
  const byte = Number(text);
  return byte <= 0xff ? byte : null;
}
