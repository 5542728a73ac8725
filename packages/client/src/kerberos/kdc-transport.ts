import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';

export interface KdcAddress {
  readonly host: string;
  readonly port: number;
}

/** Asks a key distribution center; rejects with the system's error. */
export type AskKdc = (kdc: KdcAddress, message: Uint8Array) => Promise<Uint8Array>;

const KDC_PORT = 88;
const TCP_TIMEOUT_MS = 3000;
/** Of each of a few datagrams. */
const UDP_TIMEOUT_MS = 1000;
const UDP_TRIES = 3;
const REPLY_BYTES_MAX = 1024 * 1024;

/** `host`, `host:port`, `[v6]:port`. */
export function parseKdc(text: string): KdcAddress {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  // An address of IPv6 without brackets has no port.
  if (host === undefined) return { host: text, port: KDC_PORT };
  return { host, port: port === undefined ? KDC_PORT : Number(port) };
}

/** By TCP (RFC 4120 §7.2.2): each message is preceded by its length, four bytes. */
export function askByTcp({ host, port }: KdcAddress, message: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const chunks: Buffer[] = [];
    let bytes = 0;
    /** Including the length; unknown before four bytes have arrived. */
    let expectedBytes = Number.POSITIVE_INFINITY;
    const end = (error: Error | null, reply?: Uint8Array): void => {
      clearTimeout(timer);
      socket.destroy();
      if (error !== null) reject(error);
      else resolve(reply ?? new Uint8Array(0));
    };
    const timer = setTimeout(() => end(new Error(`no answer within ${TCP_TIMEOUT_MS} ms`)), TCP_TIMEOUT_MS);
    socket.on('error', (error) => end(error));
    socket.on('close', () => end(new Error('it closed the connection without an answer')));
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes < 4) return;
      if (expectedBytes === Number.POSITIVE_INFINITY) expectedBytes = 4 + Buffer.concat(chunks).readUInt32BE();
      if (expectedBytes > 4 + REPLY_BYTES_MAX) end(new Error(`it announces an answer of ${expectedBytes - 4} bytes`));
      else if (bytes >= expectedBytes) end(null, Buffer.concat(chunks).subarray(4, expectedBytes));
    });
    const header = Buffer.alloc(4);
    header.writeUInt32BE(message.length);
    socket.write(Buffer.concat([header, message]));
  });
}

/** By UDP, a datagram in each direction; retried a few times, as either may be lost. */
export async function askByUdp({ host, port }: KdcAddress, message: Uint8Array): Promise<Uint8Array> {
  // A socket has one address family, so the name is looked up first.
  const { address, family } = await lookup(host);
  return await new Promise((resolve, reject) => {
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
    let tries = 0;
    let isOver = false;
    let timer: NodeJS.Timeout | undefined;
    const end = (error: Error | null, reply?: Uint8Array): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      socket.close();
      if (error !== null) reject(error);
      else resolve(reply ?? new Uint8Array(0));
    };
    const send = (): void => {
      if (isOver) return;
      if (tries++ === UDP_TRIES) {
        end(new Error(`no answer to ${UDP_TRIES} datagrams`));
        return;
      }
      socket.send(message);
      timer = setTimeout(send, UDP_TIMEOUT_MS);
    };
    socket.on('error', end);
    socket.on('message', (reply) => end(null, reply));
    socket.once('connect', send);
    socket.connect(port, address);
  });
}
