import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { describeHandshakeError, describeVerifyError } from '../tls/handshake-faults.ts';
import { readPeerCertificate } from '../tls/peer-certificate.ts';
import { refusalOfServer } from '../tls/peer-names.ts';
import type { TlsSettings } from '../tls/tls-settings.ts';
import type { Secured } from './socket-stream.ts';

/**
 * Runs the TLS handshake of a connection to another server. The caller enforces a timeout.
 *
 * @param host as the list of members has it
 * @param onOpen called once the certificate is verified to be for that host
 * @param onFailed called otherwise, with the reason, once the socket is closed
 */
export function secureDialled(
  socket: Socket,
  host: string,
  settings: TlsSettings,
  onOpen: (socket: Socket, secured: Secured) => void,
  onFailed: (reason: string) => void,
): void {
  const address = socket.remoteAddress ?? '';
  const secure = connect({
    socket,
    secureContext: settings.context,
    // The rest is decided here, with a reason.
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
    ...(isIP(host) === 0 ? { servername: host } : {}),
  });
  let isOver = false;
  const fail = (reason: string): void => {
    if (isOver) return;
    isOver = true;
    secure.destroy();
    onFailed(reason);
  };
  const onError = (error: NodeJS.ErrnoException): void => fail(describeHandshakeError(error));
  const onClosed = (): void =>
    fail('the server closed the connection: it may not speak TLS, or refuse our certificate');
  secure.on('error', onError);
  secure.once('close', onClosed);
  secure.once('secureConnect', () => {
    const certificate = secure.getPeerX509Certificate();
    if (certificate === undefined) {
      fail('it has shown no certificate');
      return;
    }
    if (!secure.authorized) {
      fail(describeVerifyError(secure.authorizationError));
      return;
    }
    void refusalOfServer(certificate, host, address, settings.options).then((refusal) => {
      if (refusal !== null) fail(refusal);
      if (isOver) return;
      isOver = true;
      secure.off('error', onError);
      secure.off('close', onClosed);
      onOpen(secure, { certificate: readPeerCertificate(certificate) });
    });
  });
}
