import { statSync } from 'node:fs';
import * as v from 'valibot';
import { fileFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Io } from '../run/io.ts';
import { filePath } from './file-path.ts';
import { readJsonFile } from './json-file.ts';
import { profilesFile } from './profiles-file.ts';

/*
 * profiles.json; files are relative to its directory:
 *
 *     { "default": "local",
 *       "profiles": {
 *         "local": { "server": "127.0.0.1:2181" },
 *         "prod": { "server": "zk1:2281,zk2:2281", "chroot": "/app", "tls": { "ca": "~/zk/ca.pem" } } } }
 *
 * secrets.json, readable by its owner only; what it says of a profile is added to it:
 *
 *     { "prod": { "auth": ["digest:admin:…"], "sasl": "admin:…", "tlsPassphrase": "…" } }
 */
const TLS = v.strictObject({
  ca: v.optional(v.string()),
  cert: v.optional(v.string()),
  key: v.optional(v.string()),
  serverName: v.optional(v.string()),
  insecure: v.optional(v.boolean()),
});

/** Something that belongs elsewhere. */
const SECRET = v.optional(
  v.pipe(
    v.any(),
    v.check(() => false, 'it belongs into secrets.json beside this file'),
  ),
);

const PROFILE = v.strictObject({
  server: v.string(),
  chroot: v.optional(v.string()),
  tls: v.optional(TLS),
  sessionTimeout: v.optional(v.string()),
  readOnly: v.optional(v.boolean()),
  auth: SECRET,
  sasl: SECRET,
  tlsPassphrase: SECRET,
});

/** So that `prod:/app` can be written. */
const NAME = v.pipe(
  v.string(),
  v.regex(
    /^[A-Za-z0-9_.-]+$/,
    'a name is made of letters, digits, "_", "." and "-", so that prod:/path can be written',
  ),
);

const PROFILES = v.strictObject({ default: v.optional(v.string()), profiles: v.record(NAME, PROFILE) });

const SECRETS = v.record(
  v.string(),
  v.strictObject({
    auth: v.optional(v.array(v.string())),
    sasl: v.optional(v.string()),
    tlsPassphrase: v.optional(v.string()),
  }),
);

/** A service and the credentials for it, under a name. */
export interface Profile {
  readonly name: string;
  readonly server: string;
  readonly chroot?: string | undefined;
  readonly sessionTimeout?: string | undefined;
  readonly readOnly?: boolean | undefined;
  /** `scheme:id`, or `@` and an absolute path. */
  readonly auth?: readonly string[] | undefined;
  /** `user:password`, or `@` and an absolute path. */
  readonly sasl?: string | undefined;
  readonly tls?: ProfileTls | undefined;
}

/** Files are absolute paths of PEM files. */
export interface ProfileTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
  readonly insecure?: boolean | undefined;
  readonly passphrase?: string | undefined;
}

/** All of them, and the name of the default one. */
export interface Profiles {
  readonly path: string;
  readonly default: string | null;
  readonly profiles: readonly Profile[];
}

/** @throws InvocationFailure when the files cannot be used; an absent profiles.json has no profiles */
export function readProfiles(env: Io['env']): Profiles {
  const { directory, path, secretsPath, exists } = profilesFile(env);
  if (!exists) return { path, default: null, profiles: [] };
  const file = readJsonFile(PROFILES, path);
  const secrets = readSecrets(secretsPath);
  const names = Object.keys(file.profiles);
  for (const name of Object.keys(secrets)) {
    if (!names.includes(name)) throw new InvocationFailure(`${secretsPath}: "${name}" is no profile of ${path}`);
  }
  if (file.default !== undefined && !names.includes(file.default)) {
    throw new InvocationFailure(
      `${path}: the default "${file.default}" is not one of its profiles (${names.join(', ')})`,
    );
  }
  const toPath = (text: string): string => filePath(text, directory, env);
  const toSecret = (text: string): string => (text.startsWith('@') ? `@${toPath(text.slice(1))}` : text);
  const profiles = Object.entries(file.profiles).map(([name, profile]): Profile => {
    const { auth, sasl, tlsPassphrase } = secrets[name] ?? {};
    if (tlsPassphrase !== undefined && profile.tls?.key === undefined) {
      throw new InvocationFailure(`${secretsPath}: ${name}.tlsPassphrase: the profile has no tls.key to open with it`);
    }
    return {
      name,
      server: profile.server,
      chroot: profile.chroot,
      sessionTimeout: profile.sessionTimeout,
      readOnly: profile.readOnly,
      auth: auth?.map(toSecret),
      sasl: sasl === undefined ? undefined : toSecret(sasl),
      tls: profile.tls === undefined ? undefined : settleTls(profile.tls, tlsPassphrase, toPath),
    };
  });
  return { path, default: file.default ?? null, profiles };
}

function settleTls(
  tls: v.InferOutput<typeof TLS>,
  passphrase: string | undefined,
  toPath: (text: string) => string,
): ProfileTls {
  const path = (text: string | undefined): string | undefined => (text === undefined ? undefined : toPath(text));
  return { ...tls, ca: path(tls.ca), cert: path(tls.cert), key: path(tls.key), passphrase };
}

/** @param name null: the default one, if there is one */
export function findProfile(name: string | null, env: Io['env']): Profile | null {
  const { path, default: defaultName, profiles } = readProfiles(env);
  const wanted = name ?? defaultName;
  if (wanted === null) return null;
  const profile = profiles.find((candidate) => candidate.name === wanted);
  if (profile !== undefined) return profile;
  const known =
    profiles.length === 0
      ? 'it has none; "meerkat profiles" says how to make one'
      : `it has ${profiles.map((candidate) => candidate.name).join(', ')}`;
  throw new InvocationFailure(`there is no profile "${wanted}" in ${path}: ${known}`);
}

function readSecrets(path: string): v.InferOutput<typeof SECRETS> {
  let mode: number;
  try {
    mode = statSync(path).mode;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw fileFailure(`cannot read ${path}`, error);
  }
  // Windows has no such bits.
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    throw new InvocationFailure(`${path} can be used by others: "chmod 600 ${path}" keeps its secrets to you`);
  }
  return readJsonFile(SECRETS, path);
}
