import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';

/** The answer to some bytes. */
export interface Exchange {
  readonly bytes: Buffer;
  /** How it ended: closed by the server, timeout, or an error. */
  readonly end: 'closed' | 'silent' | 'failed';
  readonly error: NodeJS.ErrnoException | null;
  /** Whether the TLS handshake was finished; true without TLS. */
  readonly isConnected: boolean;
}

export interface ExchangeTarget {
  readonly host: string;
  readonly port: number;
  /** Null: without TLS. */
  readonly tls: ConnectionOptions | null;
}

/** Connects, sends, and collects the answer until the server closes or on timeout. Rejects only on `signal`. */
export function exchange(
  { host, port, tls }: ExchangeTarget,
  text: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const socket: Socket | TLSSocket =
      tls === null
        ? connectTcp({ host, port })
        : connectTls({ ...(isIP(host) === 0 ? { servername: host } : {}), ...tls, host, port });
    const chunks: Buffer[] = [];
    let isConnected = false;
    let error: NodeJS.ErrnoException | null = null;
    const timer = setTimeout(() => finish('silent'), timeoutMs);
    const abort = (): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(signal.reason as Error);
    };
    const finish = (end: Exchange['end']): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      socket.destroy();
      resolve({ bytes: Buffer.concat(chunks), end, error, isConnected });
    };
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    socket.once(tls === null ? 'connect' : 'secureConnect', () => {
      isConnected = true;
      if (text !== '') socket.write(text);
    });
    socket.on('data', (chunk: Buffer) => {
      if (chunks.length < CHUNKS_MAX) chunks.push(chunk);
    });
    socket.once('error', (failure: NodeJS.ErrnoException) => {
      error = failure;
    });
    socket.once('close', () => finish(error === null ? 'closed' : 'failed'));
  });
}

/** Chunks kept of one answer; a server that sends more is not ZooKeeper. */
const CHUNKS_MAX = 1000;
