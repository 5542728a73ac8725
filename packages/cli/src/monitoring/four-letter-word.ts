import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { TlsConnectionOptions } from '@meerkat/client';

/** One server, and how it is spoken to. */
export interface MonitoredServer {
  readonly host: string;
  readonly port: number;
  /** `host:port`, as it is shown. */
  readonly name: string;
  /** null: without TLS. */
  readonly tls: TlsConnectionOptions | null;
}

/** A server does not answer a word: it is not there, silent, or does not allow it. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  readonly kind: 'unreachable' | 'not allowed' | 'not serving';

  constructor(kind: NoAnswerError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/**
 * Asks a server one of ZooKeeper's four-letter words.
 *
 * @returns the text, without what other servers would say in place of it
 * @param signal aborted: gives up
 * @throws NoAnswerError; AbortError
 */
export async function askWord(
  server: MonitoredServer,
  word: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string> {
  const text = await exchange(server, word, timeoutMs, signal);
  if (text.includes('is not executed because it is not in the whitelist')) {
    throw new NoAnswerError('not allowed', `${server.name} does not allow ${word}: add it to 4lw.commands.whitelist`);
  }
  if (text.startsWith('This ZooKeeper instance is not currently serving requests')) {
    throw new NoAnswerError('not serving', `${server.name} serves nobody: it has no leader, or is starting`);
  }
  return text;
}

function exchange(
  { host, port, name, tls }: MonitoredServer,
  word: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: Socket = tls === null ? connectTcp({ host, port }) : connectTls({ ...tls, host, port });
    let text = '';
    let isWhole = false;
    const timer = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs);
    const release = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
    const abort = (): void => {
      reject(new DOMException(`interrupted while ${name} was asked`, 'AbortError'));
      socket.destroy();
    };
    const fail = (reason: string): void => {
      release();
      socket.destroy();
      reject(new NoAnswerError('unreachable', `${name}: ${reason}`));
    };
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    socket.once(tls === null ? 'connect' : 'secureConnect', () => socket.write(word));
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.once('error', (error: NodeJS.ErrnoException) => fail(ERRORS[error.code ?? ''] ?? error.message));
    socket.once('end', () => {
      isWhole = true;
    });
    socket.once('close', () => {
      release();
      if (isWhole && text !== '') resolve(text);
      else fail('closed without an answer');
    });
  });
}

const ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ENOTFOUND: 'the name is not known',
  EAI_AGAIN: 'the name service does not answer',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'there is no way to that host',
  ETIMEDOUT: 'nothing answers there',
};
