import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type ConnectOptions, digestMd5 } from '@meerkat/client';
import type { LoginInfo } from '../api/messages.ts';
import type { Fields } from './fields.ts';
import type { ClusterOptions } from './options.ts';
import { Refusal } from './refusal.ts';
import type { AdminIdentity } from './session-end.ts';

/** The credentials of a session at a cluster. */
export interface Login {
  readonly info: LoginInfo;
  readonly options: ConnectOptions;
}

/** Connect options for the submitted login. The console's own credentials are used only for `own`. */
export function readLogin(cluster: ClusterOptions, fields: Fields): Login {
  const method = fields.choice('method', ['own', 'none', 'digest', 'sasl', 'certificate']);
  if (method === 'own') {
    if (!cluster.hasOwnLogin) {
      throw new Refusal(400, 'no-own-login', `the console has no credentials of its own for ${cluster.name}`);
    }
    return { info: { method, user: '' }, options: cluster.connection };
  }
  const plain = withoutCredentials(cluster.connection);
  if (method === 'none') return { info: { method, user: '' }, options: plain };
  if (method === 'certificate') return withCertificate(cluster, plain, fields);
  const user = fields.text('user');
  const password = fields.text('password');
  if (user === '' || (method === 'digest' && user.includes(':'))) {
    throw new Refusal(400, 'bad-user', 'a user has a name, and no ":" in it');
  }
  const credentials =
    method === 'digest'
      ? { auth: [{ scheme: 'digest', auth: `${user}:${password}` }] }
      : { sasl: digestMd5({ username: user, password }) };
  return { info: { method, user }, options: { ...plain, ...credentials } };
}

/** The identity of a login at admin ports, which accept a header and a certificate; null: not supported, for SASL. */
export function adminIdentityOf({ options }: Login): AdminIdentity | null {
  const { sasl, auth = [] } = options;
  if (sasl !== undefined) return null;
  const shown = typeof options.tls === 'function' ? options.tls() : options.tls;
  const tls = shown?.cert === undefined ? null : shown;
  const [first] = auth;
  if (first === undefined) return { authorization: tls === null ? 'ip' : 'x509', tls };
  const text = typeof first.auth === 'string' ? first.auth : Buffer.from(first.auth ?? []).toString();
  return { authorization: `${first.scheme} ${text}`, tls };
}

function withoutCredentials(connection: ConnectOptions): ConnectOptions {
  const { auth: _auth, sasl: _sasl, tls, ...plain } = connection;
  if (tls === undefined) return plain;
  const { cert: _cert, key: _key, passphrase: _passphrase, ...others } = typeof tls === 'function' ? tls() : tls;
  return { ...plain, tls: others };
}

function withCertificate(cluster: ClusterOptions, plain: ConnectOptions, fields: Fields): Login {
  if (plain.tls === undefined) {
    throw new Refusal(400, 'no-tls', `${cluster.name} is spoken to without TLS, where there are no certificates`);
  }
  const pem = fields.text('pem');
  const passphrase = fields.text('passphrase', '');
  const tls = {
    ...(typeof plain.tls === 'function' ? plain.tls() : plain.tls),
    cert: pem,
    key: pem,
    ...(passphrase === '' ? {} : { passphrase }),
  };
  let user: string;
  try {
    user = new X509Certificate(pem).subject.replaceAll('\n', ', ');
    createSecureContext(tls);
  } catch (error) {
    const found = (error as Error).message;
    throw new Refusal(400, 'bad-certificate', `expected a certificate and its key, both PEM, and found: ${found}`);
  }
  return { info: { method: 'certificate', user }, options: { ...plain, tls } };
}
