import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { UNLIMITED_SHARE } from '../../node/descriptors.ts';
import { Credentials } from '../../tls/credentials.ts';
import { Handshakes } from '../../tls/handshakes.ts';
import type { TlsSettings } from '../../tls/tls-settings.ts';
import type { HttpFigures } from '../figures.ts';
import type { HttpPort } from '../messages.ts';
import { CONNECTIONS_MAX, type HttpTls } from '../options.ts';

type ConnectionListener = (this: Server, socket: Socket) => void;

export interface SecureConnectionsParts {
  readonly port: HttpPort;
  readonly tls: HttpTls;
  readonly figures: HttpFigures;
  log(level: 'info' | 'warn', text: string): void;
  /** Called for each refused peer, of which there may be very many. */
  onRefused(socket: Socket, reason: string): void;
}

/**
 * Has a server of Node.js speak TLS, or on a unified port both. Connections reach it once their handshake is done, with the
 * limits that handshakes of clients have; certificates are renewed while it runs.
 *
 * @returns ends what is not secure yet, and the renewal
 * @throws StoreError when the stores cannot be used
 */
export async function secureConnections(server: Server, parts: SecureConnectionsParts): Promise<() => void> {
  const { port, tls, figures, log } = parts;
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
  const onRefused = (socket: Socket, reason: string): void => {
    figures.onHandshakeFailed();
    parts.onRefused(socket, reason);
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
    onSecure(socket, certificate) {
      if (certificate !== null) CERTIFICATES.set(socket, certificate);
      serve(socket);
    },
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
    accepting.destroyAll();
  };
}

/** An HTTP port has few connections: idle ones make room for those with requests. */
function withBound(settings: TlsSettings): TlsSettings {
  return { ...settings, options: { ...settings.options, handshakesMax: CONNECTIONS_MAX / 2 } };
}

/** The certificate of who asks, in DER, which has been checked; null without TLS, or when none was shown. */
export function certificateOf(socket: Socket): Uint8Array | null {
  return CERTIFICATES.get(socket) ?? null;
}

/** As the handshakes ended: to ask Node.js for it at each request costs a parse of the certificate. */
const CERTIFICATES = new WeakMap<Socket, Uint8Array>();
