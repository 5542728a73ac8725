import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CertificateAuthority } from '@meerkat/server';

/** A server with TLS at its ports for clients and for administrators, and who may ask it: files in PEM, keys and certificates. */
export interface AdminCertificates {
  /** Keys of `zoo.cfg`. The admin port asks for a certificate, the port for clients takes them without. */
  readonly config: Readonly<Record<string, string | boolean>>;
  readonly ca: string;
  /** Of the server. */
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
