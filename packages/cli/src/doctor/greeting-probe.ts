import type { MonitoredServer } from '@meerkat/console/monitoring';
import { type Exchange, exchange } from './exchange.ts';
import type { FaultName, Finding } from './faults.ts';

/** What a server that is reached says for itself. */
export interface Greeting {
  /** The answer to `srvr`; null when there is none. */
  readonly srvr: string | null;
  /** Whether a session is worth a try. */
  readonly isSpokenTo: boolean;
  readonly findings: readonly Finding[];
}

/** Sends `srvr`, and finds the reason if there is no answer. */
export async function probeGreeting(
  server: MonitoredServer,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Greeting> {
  const { name, tls } = server;
  const answer = await exchange(server, 'srvr', timeoutMs, signal);
  const text = answer.bytes.toString('latin1');
  if (text.startsWith('Zookeeper version:')) return { srvr: text, isSpokenTo: true, findings: [] };
  const none = (fault: FaultName, found: string, isSpokenTo = false): Greeting => {
    return { srvr: null, isSpokenTo, findings: [{ fault, where: name, found }] };
  };
  if (text.includes('is not executed because it is not in the whitelist')) {
    return none('word-not-allowed', 'srvr is not answered, so its role and version are unknown', true);
  }
  if (text.startsWith(NOT_SERVING)) return none('not-serving', 'it says that it is not serving requests');
  if (tls !== null && !answer.isConnected) return none(...faultOfHandshake(answer));
  if (isTlsRecord(answer.bytes)) return none('tls-expected', 'it answers with a TLS alert');
  if (text !== '') {
    const beginning = JSON.stringify(text.slice(0, 40));
    return none('not-zookeeper', `it answers ${beginning} to srvr`);
  }
  if (tls === null && (await speaksTls(server, timeoutMs, signal))) {
    return none('tls-expected', 'it answers nothing to plain bytes, and takes part in a TLS handshake');
  }
  // A handshake with TLS 1.3 is finished for the client before the server has looked at its certificate.
  if (answer.error !== null && tls !== null) return none(...faultOfHandshake(answer));
  if (answer.end === 'silent') return none('server-silent', `connected, and no answer within ${timeoutMs} ms`);
  return none('closed-at-once', answer.error === null ? 'closed without an answer' : `ended by ${answer.error.code}`);
}

const NOT_SERVING = 'This ZooKeeper instance is not currently serving requests';

/** An alert or a handshake record of TLS. */
function isTlsRecord(bytes: Uint8Array): boolean {
  return bytes.length >= 3 && (bytes[0] === 0x15 || bytes[0] === 0x16) && bytes[1] === 0x03;
}

/** Whether the server speaks TLS, regardless of its certificate. */
async function speaksTls({ host, port }: MonitoredServer, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
  const { isConnected, error } = await exchange(
    { host, port, tls: { rejectUnauthorized: false } },
    '',
    timeoutMs,
    signal,
  );
  return isConnected || /alert/.test(error?.message ?? '');
}

/** What the failure of a handshake means, by the codes of Node.js and the texts of OpenSSL. */
function faultOfHandshake({ error, end }: Exchange): [fault: FaultName, found: string] {
  if (error === null && end === 'silent') return ['tls-not-spoken', 'no answer to the TLS handshake'];
  const code = error?.code ?? '';
  const text = error?.message ?? 'closed during the TLS handshake';
  for (const [pattern, fault] of HANDSHAKE_FAULTS) {
    if (pattern.test(code) || pattern.test(text)) return [fault, code === '' ? text : `${code}: ${firstLine(text)}`];
  }
  return error === null || /^(ECONNRESET|EPIPE)$/.test(code)
    ? ['tls-not-spoken', text]
    : ['tls-failed', firstLine(text)];
}

const HANDSHAKE_FAULTS: readonly (readonly [RegExp, FaultName])[] = [
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'certificate-name-differs'],
  [/^CERT_HAS_EXPIRED$|^CERT_NOT_YET_VALID$/, 'certificate-expired'],
  [/^UNABLE_TO_|^DEPTH_ZERO_SELF_SIGNED|^SELF_SIGNED_CERT/, 'certificate-authority-unknown'],
  [/WRONG_VERSION_NUMBER|packet length too long|record layer failure/i, 'tls-not-spoken'],
  [/alert (protocol version|handshake failure|insufficient)|UNSUPPORTED_PROTOCOL|NO_SHARED/i, 'tls-versions-differ'],
  [
    /alert (certificate|bad certificate|unknown ca|unsupported certificate|access denied)|CERTIFICATE_REQUIRED/i,
    'certificate-missing',
  ],
];

function firstLine(text: string): string {
  return text.split('\n')[0]?.slice(0, 200) ?? '';
}
