import { readFileSync } from 'node:fs';
import type { ConnectOptions, TlsConnectionOptions } from '@meerkat/client';
import { fileFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Io } from '../run/io.ts';
import type { ConnectionWords } from './connection-words.ts';
import { parseDuration } from './duration.ts';
import type { Profile } from './profiles.ts';

/** What `connect` is given, before `sasl` is made of it: that needs the client, which is loaded late. */
export interface ConnectionSettings {
  readonly options: ConnectOptions;
  readonly sasl: { readonly username: string; readonly password: string } | null;
}

export const DEFAULT_SERVER = '127.0.0.1:2181';
const CONNECT_TIMEOUT_MS = 5000;

/**
 * Where to connect to, and as whom: each value from the command line, else from the environment, else from the profile,
 * else the default. A profile that the command line names goes before the environment.
 */
export async function settleConnection(words: ConnectionWords, io: Io): Promise<ConnectionSettings> {
  const { env } = io;
  const profile = await profileFor(words, env);
  // A service that is named on the command line is not given the credentials of a profile that nobody named.
  const fromEnvironment = words.profile === undefined ? env : {};
  const server = words.server ?? fromEnvironment['MEERKAT_SERVER'] ?? profile?.server ?? DEFAULT_SERVER;
  const auth = words.auth ?? wordsOf(fromEnvironment['MEERKAT_AUTH']) ?? profile?.auth ?? [];
  const sasl = words.sasl ?? fromEnvironment['MEERKAT_SASL'] ?? profile?.sasl;
  const chroot = words.chroot ?? profile?.chroot;
  const tls = settleTls(words, fromEnvironment, profile);
  const sessionTimeout = words.sessionTimeout ?? profile?.sessionTimeout;
  return {
    options: {
      servers: server,
      ...(chroot === undefined ? {} : { chroot }),
      ...(tls === null ? {} : { tls }),
      ...(sessionTimeout === undefined ? {} : { sessionTimeoutMs: parseDuration(sessionTimeout, '--session-timeout') }),
      connectTimeoutMs:
        words.connectTimeout === undefined
          ? CONNECT_TIMEOUT_MS
          : parseDuration(words.connectTimeout, '--connect-timeout'),
      auth: auth.map((text) => parseAuth(fromFile(text, '--auth'))),
      canBeReadOnly: words.readOnly ?? profile?.readOnly ?? false,
    },
    sasl: sasl === undefined ? null : parseSasl(fromFile(sasl, '--sasl')),
  };
}

async function profileFor(words: ConnectionWords, env: Io['env']): Promise<Profile | null> {
  const name = words.profile ?? env['MEERKAT_PROFILE'];
  // A service that is named by its address needs no file to be read, unless a profile is named as well.
  if (name === undefined && (words.server !== undefined || env['MEERKAT_SERVER'] !== undefined)) return null;
  const { profilesFile } = await import('./profiles-file.ts');
  if (name === undefined && !profilesFile(env).exists) return null;
  const { findProfile } = await import('./profiles.ts');
  return findProfile(name ?? null, env);
}

function wordsOf(text: string | undefined): readonly string[] | undefined {
  return text === undefined || text === '' ? undefined : text.split(/\s+/).filter((word) => word !== '');
}

/** `@file`: what the file holds, so that a secret need not stand in the list of processes. */
function fromFile(text: string, origin: string): string {
  if (!text.startsWith('@')) return text;
  try {
    return readFileSync(text.slice(1), 'utf8').trim();
  } catch (error) {
    throw fileFailure(`cannot read the credentials of ${origin} ${text}`, error);
  }
}

export function parseAuth(text: string): { readonly scheme: string; readonly auth: string } {
  const end = text.indexOf(':');
  if (end < 1) {
    throw new InvocationFailure('--auth: expected scheme:id, such as digest:user:password, and found no scheme');
  }
  return { scheme: text.slice(0, end), auth: text.slice(end + 1) };
}

function parseSasl(text: string): { readonly username: string; readonly password: string } {
  const end = text.indexOf(':');
  if (end < 1) throw new InvocationFailure('--sasl: expected user:password');
  return { username: text.slice(0, end), password: text.slice(end + 1) };
}

function settleTls(words: ConnectionWords, env: Io['env'], profile: Profile | null): TlsConnectionOptions | null {
  const ca = words.tlsCa ?? env['MEERKAT_TLS_CA'] ?? profile?.tls?.ca;
  const cert = words.tlsCert ?? env['MEERKAT_TLS_CERT'] ?? profile?.tls?.cert;
  const key = words.tlsKey ?? env['MEERKAT_TLS_KEY'] ?? profile?.tls?.key;
  const servername = words.tlsServerName ?? profile?.tls?.serverName;
  const isInsecure = words.tlsInsecure ?? profile?.tls?.insecure ?? false;
  const passphrase = env['MEERKAT_TLS_PASSPHRASE'] ?? profile?.tls?.passphrase;
  const isWanted = words.tls ?? (profile?.tls !== undefined || ['1', 'true'].includes(env['MEERKAT_TLS'] ?? ''));
  if (
    !isWanted &&
    ca === undefined &&
    cert === undefined &&
    key === undefined &&
    !isInsecure &&
    servername === undefined
  ) {
    return null;
  }
  return {
    ...(ca === undefined ? {} : { ca: readPem(ca, '--tls-ca') }),
    ...(cert === undefined ? {} : { cert: readPem(cert, '--tls-cert') }),
    ...(key === undefined ? {} : { key: readPem(key, '--tls-key') }),
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(servername === undefined ? {} : { servername }),
    ...(isInsecure ? { rejectUnauthorized: false } : {}),
  };
}

function readPem(file: string, origin: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw fileFailure(`cannot read ${origin} ${file}`, error);
  }
}
