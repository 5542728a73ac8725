/**
 * The first bytes on a connection to the election port: the id of the dialling server, and where to dial back
 * (QuorumCnxManager). There is no answer; frames follow.
 *
 *     hello     := long version, long serverId, int length, addresses      (1 to 2048 bytes of UTF-8)
 *                | long serverId                                           before 3.5: the first long is not negative
 *     version   := −65536 one address │ −65535 several, where `multiAddress.enabled` is on in the whole ensemble
 *     addresses := host ":" port ( "|" host ":" port )*
 */
import type { JuteReader } from '../jute/reader.ts';
import { textBytes } from '../jute/text-bytes.ts';
import { getInt, type JuteWriter } from '../jute/writer.ts';
import {
  formatHostPort,
  type HostPort,
  isHost,
  isWildcardHost,
  parsePort,
  splitHostAndPorts,
  splitText,
} from './host-port.ts';

export const HelloVersion = { singleAddress: -65536, multipleAddresses: -65535 } as const;
export type HelloVersion = (typeof HelloVersion)[keyof typeof HelloVersion];

export interface ElectionHello {
  /** null: a server from before 3.5. */
  readonly version: HelloVersion | null;
  /** null: an observer of an old release that does not send its id. */
  readonly serverId: number | null;
  /**
   * Election addresses of the dialling server, from its configuration. Wildcard addresses are dropped when reading; if
   * none is left, the configured address of that server is to be dialled.
   */
  readonly addresses: readonly HostPort[];
}

/** Largest length of the addresses in bytes. */
export const HELLO_ADDRESS_BYTES_MAX = 2048;

/**
 * Writes a current hello. It must have an address. Of several only the first is written, unless the version allows
 * more; then as many as a reader accepts.
 */
export function writeElectionHello(
  writer: JuteWriter,
  hello: ElectionHello & { readonly version: HelloVersion; readonly serverId: number },
): void {
  writer.long(hello.version);
  writer.long(hello.serverId);
  const [first = '', ...more] = hello.addresses.map(formatHostPort);
  let text = first;
  if (hello.version !== HelloVersion.singleAddress) {
    for (const address of more) {
      if (textBytes(text) + 1 + textBytes(address) <= HELLO_ADDRESS_BYTES_MAX) text += `|${address}`;
    }
  }
  writer.ustring(text);
}

/**
 * Measures the hello at `start` in the bytes received so far.
 *
 * @returns its length in bytes; 0 while it is incomplete; −1 when it is invalid
 */
export function measureElectionHello(bytes: Uint8Array, start: number, end: number): number {
  const there = end - start;
  if (there < LONG_BYTES) return 0;
  const versionHigh = getInt(bytes, start);
  if (versionHigh >= 0) return LONG_BYTES;
  if (versionHigh !== -1 || !isHelloVersion(getInt(bytes, start + 4))) return -1;
  if (there < HEADER_BYTES) return 0;
  const length = getInt(bytes, start + HEADER_BYTES - 4);
  if (length < 1 || length > HELLO_ADDRESS_BYTES_MAX) return -1;
  return there < HEADER_BYTES + length ? 0 : HEADER_BYTES + length;
}

/** Reads a complete hello. @returns null when it is invalid: the connection must be closed */
export function readElectionHello(reader: JuteReader): ElectionHello | null {
  const start = reader.position;
  if (reader.int() >= 0) {
    reader.position = start;
    const serverId = readServerId(reader);
    return reader.failed ? null : { version: null, serverId, addresses: [] };
  }
  reader.position = start;
  const version = reader.long();
  const serverId = readServerId(reader);
  const text = reader.ustring();
  if (reader.failed || !isHelloVersion(version) || text === null) return null;
  if (text === '' || reader.position - start > HEADER_BYTES + HELLO_ADDRESS_BYTES_MAX) return null;
  const addresses = parseAddresses(text);
  return addresses === null ? null : { version, serverId, addresses };
}

const LONG_BYTES = 8;
/** Version, server id and length. */
const HEADER_BYTES = 20;
/** Long.MAX_VALUE instead of a server id. */
const ANONYMOUS = 2n ** 63n - 1n;

function isHelloVersion(value: number): value is HelloVersion {
  return value === HelloVersion.singleAddress || value === HelloVersion.multipleAddresses;
}

/** Server ids are not negative. Returns null for the anonymous id, and when the reader fails. */
function readServerId(reader: JuteReader): number | null {
  const start = reader.position;
  if (reader.longBig() === ANONYMOUS) return null;
  reader.position = start;
  const serverId = reader.long();
  if (serverId < 0) reader.failed = true;
  return serverId;
}

/** null when one of them has no host or no port, or something behind the port. */
function parseAddresses(text: string): readonly HostPort[] | null {
  const addresses: HostPort[] = [];
  for (const part of splitText(text, '|')) {
    const [host, portText, ...rest] = splitHostAndPorts(part) ?? [];
    const port = portText === undefined ? null : parsePort(portText);
    if (host === undefined || !isHost(host) || port === null || rest.length > 0) return null;
    if (!isWildcardHost(host)) addresses.push({ host, port });
  }
  return addresses;
}
