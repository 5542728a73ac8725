import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { UNLIMITED_SHARE } from '../../node/descriptors.ts';
import { Credentials } from '../../tls/credentials.ts';
import { Handshakes } from '../../tls/handshakes.ts';
import type { TlsSettings } from '../../tls/tls-settings.ts';
import type { HttpFigures } from '../figures.ts';
import type { HttpPort, ToService } from '../messages.ts';
import { CONNECTIONS_MAX, type HttpTls } from '../options.ts';

type ConnectionListener = (this: Server, socket: Socket) => void;

export interface SecureConnectionsParts {
  readonly port: HttpPort;
  readonly tls: HttpTls;
  readonly figures: HttpFigures;
  tell(message: ToService): void;
}

/**
 * Has a server of Node.js speak TLS, or on a unified port both. Connections reach it once their handshake is done, with the
 * limits that handshakes of clients have; certificates are renewed while it runs.
 *
 * @returns ends what is not secure yet, and the renewal
 * @throws StoreError when the stores cannot be used
 */
export async function secureConnections(server: Server, parts: SecureConnectionsParts): Promise<() => void> {
  const { port, tls, figures, tell } = parts;
  const name = port === 'admin' ? 'the admin port' : 'the port for Prometheus';
  const log = (level: 'info' | 'warn', text: string): void => tell({ kind: 'log', level, text: `${name}: ${text}` });
  let handshakes: Handshakes | null = null;
  const credentials = await Credentials.open(tls.options, {
    onRenewed: (settings) => handshakes?.renew(withBound(settings)),
    onNotice: (text) => log('info', text),
    onWarning: (text) => log('warn', text),
  });
  const listeners = server.listeners('connection') as ConnectionListener[];
  const serve = (socket: Socket): void => {
    for (const listener of listeners) listener.call(server, socket);
  };
  const refusals = new RefusalLog((text) => log('warn', text));
  const onRefused = (socket: Socket, reason: string): void => {
    figures.onHandshakeFailed();
    refusals.add(`${socket.remoteAddress ?? 'a client'} is refused: ${reason}`);
  };
  const accepting = new Handshakes(withBound(credentials.settings), 0, {
    ...(tls.isUnified
      ? {
          onPlain(socket: Socket) {
            if (port === 'admin') figures.onPlainConnection();
            serve(socket);
          },
        }
      : {}),
    onSecure: serve,
    onFailed: onRefused,
    onExceeded: onRefused,
  });
  handshakes = accepting;
  server.removeAllListeners('connection');
  server.on('connection', (socket) => accepting.accept(socket, UNLIMITED_SHARE));
  const showDaysLeft = (): void => {
    if (port === 'admin') figures.adminExpiresInDays = credentials.daysLeft;
  };
  showDaysLeft();
  const timer = setInterval(showDaysLeft, tls.options.renewalPollMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    credentials.stop();
    refusals.stop();
    accepting.destroyAll();
  };
}

/** A port for HTTP has few connections: those that only stand there leave room for those that ask. */
function withBound(settings: TlsSettings): TlsSettings {
  return { ...settings, options: { ...settings.options, handshakesMax: CONNECTIONS_MAX / 2 } };
}

/** The certificate of who asks, which has been checked; null without TLS, or when none was shown. */
export function certificateOf(socket: Socket): Uint8Array | null {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return null;
  return socket.getPeerX509Certificate()?.raw ?? null;
}

/** Strangers cause these lines at will: one a second at most, with how many there were. */
class RefusalLog {
  readonly #log: (text: string) => void;
  #more = 0;
  #last = '';
  #timer: NodeJS.Timeout | null = null;

  constructor(log: (text: string) => void) {
    this.#log = log;
  }

  add(text: string): void {
    if (this.#timer !== null) {
      this.#more++;
      this.#last = text;
      return;
    }
    this.#log(text);
    this.#timer = setTimeout(() => this.#onSecond(), 1000);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #onSecond(): void {
    this.#timer = null;
    if (this.#more === 0) return;
    const others = this.#more - 1;
    this.#more = 0;
    this.add(others === 0 ? this.#last : `${this.#last} (and ${others} more before)`);
  }
}
