/**
 * What an I/O thread and the thread of the core say to each other, in records of a ring. A record belongs to a connection, whose
 * number the I/O thread has chosen.
 */
import type { PeerAddress, PeerCertificate } from '../base/ports.ts';

/** From an I/O thread to the core. */
export const Report = {
  /** A connection has come: `Opened`, as JSON. */
  opened: 1,
  bytes: 2,
  /** The peer sends nothing more, and may still read. */
  halfClosed: 3,
  /** It is gone; nothing follows. The reason, as text. */
  closed: 4,
  /** A number: so many bytes of output are with the kernel. */
  taken: 5,
  /** The kernel takes no more output now. */
  backedUp: 6,
  /** A number, as `taken`: the kernel has everything again. */
  drained: 7,
  /** Of no connection: text that the host of the thread has for its other half. */
  note: 8,
} as const;

/** From the core to an I/O thread. */
export const Order = {
  write: 1,
  /** Close after everything written so far has left. */
  end: 2,
  /** Close at once. */
  destroy: 3,
  /** The peer has closed its end, and nothing more comes for it. */
  finish: 4,
  /** A number: so many bytes of input have been read. */
  credit: 5,
  /** `end` or `finish` follows behind bytes that have not left yet: the peer has only so long to read them. */
  linger: 6,
} as const;

export interface Opened {
  /** Number of the port that has accepted it. */
  readonly port: number;
  readonly remote: PeerAddress;
  readonly isCrowding: boolean;
  readonly certificate: PeerCertificate | null;
  readonly isSecure: boolean;
}

export function writeOpened({ remote, ...rest }: Opened): Uint8Array {
  const { ip, ...address } = remote;
  return ENCODER.encode(JSON.stringify({ ...rest, remote: { ip: [...ip], ...address } }));
}

export function readOpened(bytes: Uint8Array): Opened {
  const { remote, ...rest } = JSON.parse(DECODER.decode(bytes)) as Omit<Opened, 'remote'> & {
    readonly remote: Omit<PeerAddress, 'ip'> & { readonly ip: readonly number[] };
  };
  return { ...rest, remote: { ...remote, ip: Uint8Array.from(remote.ip) } };
}

export function writeText(text: string): Uint8Array {
  return ENCODER.encode(text);
}

export function readText(bytes: Uint8Array): string {
  return DECODER.decode(bytes);
}

/**
 * What one connection may have on its way, so that it fills its own share and never the ring: bytes that one thread has handed
 * over and the other one has not reported as read, or as taken by the kernel. Reports come in steps, a record for many bytes.
 * The share is less, but never less than a step, while the connections of a thread have more than `COMMON` on their way together.
 */
export const INPUT_BYTES_MAX: number = 128 * 1024;
export const INPUT_STEP: number = 16 * 1024;
export const INPUT_COMMON: number = 32 * 1024 * 1024;
export const OUTPUT_BYTES_MAX: number = 128 * 1024;
export const OUTPUT_STEP: number = 32 * 1024;
export const OUTPUT_COMMON: number = 64 * 1024 * 1024;

/**
 * How often a side that has taken so many records looks again, a turn each, before it sleeps: where they come in numbers more are on their way,
 * and to be woken costs both sides some 5 µs, more than a turn. With 300 clients it saved the core a third of its
 * time, in one run on a busy machine. A client alone is not waited for: without a processor to spare it would be served later.
 */
export function looksAfter(records: number): number {
  return records >= RECORDS_MANY ? LOOKS : 0;
}

const RECORDS_MANY = 8;
const LOOKS = 8;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();
