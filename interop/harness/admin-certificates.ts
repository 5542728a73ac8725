import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CertificateAuthority } from '@meerkat/server';

/** TLS on a server's client and admin ports, and certificates of its users: PEM files with keys and certificates. */
export interface AdminCertificates {
  /** Keys of `zoo.cfg`. The admin port requests a certificate, the client port accepts clients without one. */
  readonly config: Readonly<Record<string, string | boolean>>;
  readonly ca: string;
  /** Key and certificate of the server. */
  readonly keys: string;
  readonly root: string;
  readonly ann: string;
}

export function writeCertificates(directory: string): AdminCertificates {
  const authority = new CertificateAuthority();
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const ca = file('ca.pem', authority.certificate);
  const keys = file('server.pem', authority.issue('server', { names: ['IP:127.0.0.1'] }).keyStore);
  return {
    config: {
      'client.portUnification': true,
      'ssl.keyStore.location': keys,
      'ssl.trustStore.location': ca,
      'ssl.clientAuth': 'want',
      'admin.forceHttps': true,
      'admin.needClientAuth': true,
      'admin.ssl.keyStore.location': keys,
      'admin.ssl.trustStore.location': ca,
    },
    ca,
    keys,
    root: file('root.pem', authority.issue('root').keyStore),
    ann: file('ann.pem', authority.issue('ann').keyStore),
  };
}
