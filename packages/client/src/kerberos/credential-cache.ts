/**
 * The cache of tickets that `kinit` writes, formats 0x0503 and 0x0504 of MIT Kerberos; all numbers are big-endian:
 *
 *     cache      := 05 04, u2 bytes, header, principal, *credential       version 3 has no header
 *     principal  := u4 name type, u4 components, realm, *component
 *     credential := principal client, principal service, u2 key type, [u2 the same in version 3], key,
 *                   u4 authenticated, u4 starts, u4 ends, u4 renewable until (seconds), u1, u4 flags, *address, *authorization, ticket, second ticket
 *     realm, component, key, ticket := u4 length, bytes
 *     *address, *authorization      := u4 number, then of each: u2 type, u4 length, bytes
 */
import type { ServiceTicket } from './service-ticket.ts';

export interface CredentialCache {
  /** The user, with its realm. */
  readonly principal: string;
  readonly tickets: readonly ServiceTicket[];
}

/** Null when the bytes are not such a cache, or truncated. */
export function parseCredentialCache(file: Uint8Array): CredentialCache | null {
  const reader = new Reader(file);
  const version = reader.number(2);
  if (version !== 0x0503 && version !== 0x0504) return null;
  if (version === 0x0504) reader.bytes(reader.number(2));
  const principal = readPrincipal(reader);
  const tickets: ServiceTicket[] = [];
  while (reader.hasMore) tickets.push(readCredential(reader, version));
  // Skips kinit's own entries between the tickets.
  return reader.isCut
    ? null
    : { principal, tickets: tickets.filter(({ service }) => !service.endsWith('@X-CACHECONF:')) };
}

function readPrincipal(reader: Reader): string {
  reader.number(4);
  const count = reader.number(4);
  const realm = reader.text();
  const components: string[] = [];
  while (components.length < count && !reader.isCut) components.push(reader.text());
  return `${components.join('/')}@${realm}`;
}

function readCredential(reader: Reader, version: number): ServiceTicket {
  const client = readPrincipal(reader);
  const service = readPrincipal(reader);
  const encryptionType = reader.number(2);
  if (version === 0x0503) reader.number(2);
  const sessionKey = { encryptionType, bytes: reader.bytes(reader.number(4)) };
  const [authenticated, starts, ends] = [reader.number(4), reader.number(4), reader.number(4)];
  reader.number(4);
  reader.number(1);
  reader.number(4);
  for (let list = 0; list < 2; list++) {
    for (let left = reader.number(4); left > 0 && !reader.isCut; left--) {
      reader.number(2);
      reader.bytes(reader.number(4));
    }
  }
  const ticket = reader.bytes(reader.number(4));
  reader.bytes(reader.number(4));
  return { client, service, ticket, sessionKey, startsMs: (starts || authenticated) * 1000, endsMs: ends * 1000 };
}

/** Reads zeros after the end of the file. */
class Reader {
  readonly #file: Buffer;
  #at = 0;

  constructor(file: Uint8Array) {
    this.#file = Buffer.from(file.buffer, file.byteOffset, file.length);
  }

  get hasMore(): boolean {
    return this.#at < this.#file.length;
  }

  /** Whether it was read beyond its end. */
  get isCut(): boolean {
    return this.#at > this.#file.length;
  }

  number(size: 1 | 2 | 4): number {
    const bytes = this.bytes(size);
    return bytes.length === size ? bytes.readUIntBE(0, size) : 0;
  }

  text(): string {
    return this.bytes(this.number(4)).toString('utf8');
  }

  bytes(length: number): Buffer {
    const start = this.#at;
    this.#at += length;
    return this.#file.subarray(start, this.#at);
  }
}
