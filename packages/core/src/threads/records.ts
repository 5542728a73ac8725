/**
 * The messages between an I/O thread and the core's thread, in records of a ring. A record belongs to a connection,
 * whose number the I/O thread has chosen.
 */
import type { PeerAddress, PeerCertificate } from '../base/ports.ts';

/** From an I/O thread to the core. */
export const Report = {
  /** A connection was accepted: `Opened`, as JSON. */
  opened: 1,
  bytes: 2,
  /** The peer has closed its sending side, and may still read. */
  halfClosed: 3,
  /** The connection is gone; nothing follows. The reason, as text. */
  closed: 4,
  /** A number: how many bytes of output the kernel has accepted. */
  taken: 5,
  /** The kernel accepts no more output for now. */
  backedUp: 6,
  /** A number, as `taken`: the kernel has accepted everything again. */
  drained: 7,
  /** Without a connection: text that the thread's host sends to its other half. */
  note: 8,
} as const;

/** From the core to an I/O thread. */
export const Order = {
  write: 1,
  /** Close after everything written so far has been sent. */
  end: 2,
  /** Close at once. */
  destroy: 3,
  /** The peer has closed its sending side, and no more output follows. */
  finish: 4,
  /** A number: how many bytes of input have been read. */
  credit: 5,
  /** `end` or `finish` follows, after bytes that have not been sent yet: the peer has limited time to read them. */
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
 * What one connection may have in flight, so that it fills its own share and never the ring: bytes that one thread has
 * handed over and the other one has not reported as read, or as accepted by the kernel. Reports come in steps, one
 * record for many bytes. The share shrinks, but never below one step, while the connections of a thread together have
 * more than `COMMON` in flight.
 */
export const INPUT_BYTES_MAX: number = 128 * 1024;
export const INPUT_STEP: number = 16 * 1024;
export const INPUT_COMMON: number = 32 * 1024 * 1024;
export const OUTPUT_BYTES_MAX: number = 128 * 1024;
export const OUTPUT_STEP: number = 32 * 1024;
export const OUTPUT_COMMON: number = 64 * 1024 * 1024;

/**
 * How many turns a side that has taken this many records polls before it sleeps: where records come in large numbers
 * more are in flight, and a wake-up costs both sides some 5 µs, more than a turn. With 300 clients it saved the core a
 * third of its time, in one run on a busy machine. A single client is not waited for: without a spare processor polling
 * would delay it.
 */
export function looksAfter(records: number): number {
  return records >= RECORDS_MANY ? LOOKS : 0;
}

const RECORDS_MANY = 8;
const LOOKS = 8;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();
