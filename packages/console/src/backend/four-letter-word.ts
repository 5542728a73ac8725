import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { CertificateInfo } from '../api/messages.ts';
import type { MonitoredServer } from './options.ts';

/** A server does not answer a four-letter word: it is down, silent, or does not allow it. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  readonly kind: 'unreachable' | 'not allowed' | 'not serving';

  constructor(kind: NoAnswerError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

export interface WordAnswer {
  readonly text: string;
  /** Of the server; null without TLS. */
  readonly certificate: CertificateInfo | null;
}

/**
 * Sends one of ZooKeeper's four-letter words to a server.
 *
 * @param signal cancels it
 * @throws NoAnswerError; AbortError
 */
export async function askWord(
  server: MonitoredServer,
  word: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<string> {
  return (await askWithCertificate(server, word, timeoutMs, signal)).text;
}

/** The same, and the server's certificate. */
export async function askWithCertificate(
  server: MonitoredServer,
  word: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<WordAnswer> {
  const answer = await exchange(server, word, timeoutMs, signal);
  if (answer.text.includes('is not executed because it is not in the whitelist')) {
    throw new NoAnswerError('not allowed', `${server.name} does not allow ${word}: add it to 4lw.commands.whitelist`);
  }
  if (answer.text.startsWith('This ZooKeeper instance is not currently serving requests')) {
    throw new NoAnswerError('not serving', `${server.name} does not serve requests: it has no leader, or is starting`);
  }
  return answer;
}

function exchange(
  { host, port, name, tls }: MonitoredServer,
  word: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<WordAnswer> {
  return new Promise((resolve, reject) => {
    const socket: Socket = tls === null ? connectTcp({ host, port }) : connectTls({ ...tls, host, port });
    let text = '';
    let isWhole = false;
    let certificate: CertificateInfo | null = null;
    const release = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    };
    const abort = (): void => {
      release();
      reject(new DOMException(`interrupted while ${name} was asked`, 'AbortError'));
      socket.destroy();
    };
    const fail = (reason: string): void => {
      release();
      socket.destroy();
      reject(new NoAnswerError('unreachable', `${name}: ${reason}`));
    };
    const timer = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted === true) abort();
    socket.once(tls === null ? 'connect' : 'secureConnect', () => {
      if (tls !== null) certificate = describeCertificate(socket as TLSSocket);
      socket.write(word);
    });
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > TEXT_MAX) fail(`the answer to ${word} is longer than ${TEXT_MAX >> 20} MiB`);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => fail(ERRORS[error.code ?? ''] ?? error.message));
    socket.once('end', () => {
      isWhole = true;
    });
    socket.once('close', () => {
      release();
      if (isWhole && text !== '') resolve({ text, certificate });
      else fail('closed without an answer');
    });
  });
}

function describeCertificate(socket: TLSSocket): CertificateInfo | null {
  const peer = socket.getPeerX509Certificate();
  if (peer === undefined) return null;
  return {
    subject: peer.subject.replaceAll('\n', ', '),
    issuer: peer.issuer.replaceAll('\n', ', '),
    validFromMs: Date.parse(peer.validFrom),
    validToMs: Date.parse(peer.validTo),
  };
}

const ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the name is not known',
  EAI_AGAIN: 'the name service does not answer',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was reset',
  EHOSTUNREACH: 'there is no way to that host',
  ETIMEDOUT: 'nothing answers there',
};

/** Enough for a million watches. */
const TEXT_MAX = 64 << 20;
