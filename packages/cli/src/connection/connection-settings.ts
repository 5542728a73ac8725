import { readFileSync } from 'node:fs';
import type { ConnectOptions } from '@meerkat/client';
import { fileFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Io } from '../run/io.ts';
import type { ConnectionWords } from './connection-words.ts';
import { parseDuration } from './duration.ts';
import { envValue } from './environment.ts';
import { filePath } from './file-path.ts';
import type { Profile } from './profiles.ts';

/** As whom to log in: by a ticket of Kerberos, or by a password. */
export type SaslSettings = 'kerberos' | { readonly username: string; readonly password: string };

/** What `connect` is given, before `sasl` is made of it: that needs the client, which is loaded late. */
export interface ConnectionSettings {
  readonly options: ConnectOptions;
  readonly sasl: SaslSettings | null;
}

export const DEFAULT_SERVER = '127.0.0.1:2181';
const CONNECT_TIMEOUT_MS = 5000;
/** It is sent as 32 bits with sign. */
const SESSION_TIMEOUT_MS_MAX = 2 ** 31 - 1;

/**
 * Where to connect to, and as whom. Each value is taken from the command line, else from the environment, else from the
 * profile, else it is the default.
 *
 * 1. Which profile: the one of --profile; else, unless --server names a service, that of MEERKAT_PROFILE; else, unless
 *    MEERKAT_SERVER names a service, the default one. So no credentials go to a service that they are not for.
 * 2. With --profile the environment is not asked: it is about another service.
 */
export async function settleConnection(words: ConnectionWords, io: Io): Promise<ConnectionSettings> {
  const env = words.profile === undefined ? io.env : { HOME: io.env['HOME'] };
  const profile = await profileFor(words, io.env);
  const server = words.server ?? envValue(env, 'MEERKAT_SERVER') ?? profile?.server ?? DEFAULT_SERVER;
  const chroot = words.chroot ?? profile?.chroot;
  const tls = wantsTls(words, env, profile) ? (await import('./tls-settings.ts')).settleTls(words, env, profile) : null;
  return {
    options: {
      servers: server,
      ...(chroot === undefined ? {} : { chroot }),
      ...(tls === null ? {} : { tls }),
      ...sessionTimeoutOf(words, profile),
      connectTimeoutMs: connectTimeoutOf(words),
      auth: settleAuth(words, env, profile),
      canBeReadOnly: words.readOnly ?? profile?.readOnly ?? false,
    },
    sasl: settleSasl(words, env, profile),
  };
}

/** A limit of two seconds for a request implies no five seconds for a connection. */
function connectTimeoutOf({ connectTimeout, timeout }: ConnectionWords): number {
  if (connectTimeout !== undefined) return parseDuration(connectTimeout, '--connect-timeout');
  if (timeout === undefined) return CONNECT_TIMEOUT_MS;
  return Math.min(CONNECT_TIMEOUT_MS, parseDuration(timeout, '--timeout'));
}

async function profileFor(words: ConnectionWords, env: Io['env']): Promise<Profile | null> {
  const name = words.profile ?? (words.server === undefined ? envValue(env, 'MEERKAT_PROFILE') : undefined);
  // A service that is named by its address needs no file to be read.
  if (name === undefined && (words.server ?? envValue(env, 'MEERKAT_SERVER')) !== undefined) return null;
  const { profilesFile } = await import('./profiles-file.ts');
  if (name === undefined && !profilesFile(env).exists) return null;
  const { findProfile } = await import('./profiles.ts');
  return findProfile(name ?? null, env);
}

function sessionTimeoutOf(words: ConnectionWords, profile: Profile | null): { sessionTimeoutMs?: number } {
  const origin =
    words.sessionTimeout === undefined ? `sessionTimeout of the profile "${profile?.name}"` : '--session-timeout';
  const wish = words.sessionTimeout ?? profile?.sessionTimeout;
  if (wish === undefined) return {};
  const sessionTimeoutMs = parseDuration(wish, origin);
  if (sessionTimeoutMs <= SESSION_TIMEOUT_MS_MAX) return { sessionTimeoutMs };
  throw new InvocationFailure(`${origin}: a session has a timeout of less than 25 days, not ${wish}`);
}

function settleAuth(words: ConnectionWords, env: Io['env'], profile: Profile | null): ConnectOptions['auth'] {
  const parseAll = (texts: readonly string[], origin: string) =>
    texts.map((text) => parseAuth(fromFile(text, origin, env), origin));
  if (words.auth !== undefined) return parseAll(words.auth, '--auth');
  const fromEnvironment = envValue(env, 'MEERKAT_AUTH');
  if (fromEnvironment !== undefined) return parseAll(fromEnvironment.trim().split(/\s+/), 'MEERKAT_AUTH');
  return parseAll(profile?.auth ?? [], `auth of the profile "${profile?.name}"`);
}

function settleSasl(words: ConnectionWords, env: Io['env'], profile: Profile | null): ConnectionSettings['sasl'] {
  const parse = (text: string, origin: string) => parseSasl(fromFile(text, origin, env), origin);
  if (words.sasl !== undefined) return parse(words.sasl, '--sasl');
  const fromEnvironment = envValue(env, 'MEERKAT_SASL');
  if (fromEnvironment !== undefined) return parse(fromEnvironment, 'MEERKAT_SASL');
  return profile?.sasl === undefined ? null : parse(profile.sasl, `sasl of the profile "${profile.name}"`);
}

/**
 * TLS is spoken when the command line has one of its options; else as MEERKAT_TLS says; else when another of its
 * variables is set or the profile has `tls`.
 */
function wantsTls(words: ConnectionWords, env: Io['env'], profile: Profile | null): boolean {
  const { tls, tlsCa, tlsCert, tlsKey, tlsServerName, tlsInsecure } = words;
  if ([tls, tlsCa, tlsCert, tlsKey, tlsServerName, tlsInsecure].some((word) => word !== undefined)) return true;
  const text = envValue(env, 'MEERKAT_TLS');
  if (text !== undefined) {
    if (['1', 'true'].includes(text)) return true;
    if (['0', 'false'].includes(text)) return false;
    throw new InvocationFailure(`MEERKAT_TLS: expected 1 or 0, found "${text}"`);
  }
  const variables = ['MEERKAT_TLS_CA', 'MEERKAT_TLS_CERT', 'MEERKAT_TLS_KEY'];
  return profile?.tls !== undefined || variables.some((name) => envValue(env, name) !== undefined);
}

/** `@file`: the contents of the file, so that a secret does not appear in the process list. */
function fromFile(text: string, origin: string, env: Io['env']): string {
  if (!text.startsWith('@')) return text;
  try {
    return readFileSync(filePath(text.slice(1), process.cwd(), env), 'utf8').trim();
  } catch (error) {
    throw fileFailure(`cannot read the credentials of ${origin} from ${text.slice(1)}`, error);
  }
}

/** @param origin where it stands, for the error; the text itself may be a secret */
export function parseAuth(text: string, origin = '--auth'): { readonly scheme: string; readonly auth: string } {
  const end = text.indexOf(':');
  if (end < 1) {
    throw new InvocationFailure(`${origin}: expected scheme:id, such as digest:user:password, and found no scheme`);
  }
  return { scheme: text.slice(0, end), auth: text.slice(end + 1) };
}

function parseSasl(text: string, origin: string): SaslSettings {
  if (text === 'kerberos') return text;
  const end = text.indexOf(':');
  if (end < 1)
    throw new InvocationFailure(`${origin}: expected user:password or kerberos, and found no ":" behind a user`);
  return { username: text.slice(0, end), password: text.slice(end + 1) };
}
