import { readFileSync, statSync } from 'node:fs';
import * as v from 'valibot';
import { fileFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Io } from '../run/io.ts';
import { profilesFile } from './profiles-file.ts';

/*
 * profiles.json:
 *
 *     { "default": "local",
 *       "profiles": {
 *         "local": { "server": "127.0.0.1:2181" },
 *         "prod": { "server": "zk1:2281,zk2:2281", "chroot": "/app", "tls": { "ca": "/etc/zk/ca.pem" } } } }
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

const PROFILE = v.strictObject({
  server: v.string(),
  chroot: v.optional(v.string()),
  tls: v.optional(TLS),
  sessionTimeout: v.optional(v.string()),
  readOnly: v.optional(v.boolean()),
});

const PROFILES = v.strictObject({ default: v.optional(v.string()), profiles: v.record(v.string(), PROFILE) });

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
  readonly auth?: readonly string[] | undefined;
  readonly sasl?: string | undefined;
  readonly tls?: ProfileTls | undefined;
}

/** Files are paths of PEM files. */
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
  const { path, secretsPath, exists } = profilesFile(env);
  if (!exists) return { path, default: null, profiles: [] };
  const file = parse(PROFILES, path);
  const secrets = readSecrets(secretsPath);
  const names = Object.keys(file.profiles);
  for (const name of Object.keys(secrets)) {
    if (!names.includes(name)) throw new InvocationFailure(`${secretsPath}: "${name}" is no profile of ${path}`);
  }
  const profiles = Object.entries(file.profiles).map(([name, profile]): Profile => {
    const { auth, sasl, tlsPassphrase } = secrets[name] ?? {};
    const tls = tlsPassphrase === undefined ? profile.tls : { ...profile.tls, passphrase: tlsPassphrase };
    return { ...profile, name, auth, sasl, tls };
  });
  if (file.default !== undefined && !names.includes(file.default)) {
    throw new InvocationFailure(`${path}: the default "${file.default}" is none of its profiles (${names.join(', ')})`);
  }
  return { path, default: file.default ?? null, profiles };
}

/** @param name null: the default one, if there is one */
export function findProfile(name: string | null, env: Io['env']): Profile | null {
  const { path, default: defaultName, profiles } = readProfiles(env);
  const wanted = name ?? defaultName;
  if (wanted === null) return null;
  const profile = profiles.find((candidate) => candidate.name === wanted);
  if (profile !== undefined) return profile;
  const known =
    profiles.length === 0 ? 'it has none' : `it has ${profiles.map((candidate) => candidate.name).join(', ')}`;
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
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    throw new InvocationFailure(`${path} can be read by others: "chmod 600 ${path}" keeps its secrets to you`);
  }
  return parse(SECRETS, path);
}

function parse<Schema extends v.GenericSchema>(schema: Schema, path: string): v.InferOutput<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw new InvocationFailure(`${path} is no JSON: ${error.message}`, error);
    throw fileFailure(`cannot read ${path}`, error);
  }
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const [issue] = result.issues;
  const place = v.getDotPath(issue) ?? 'the whole';
  throw new InvocationFailure(
    `${path}: ${place}: expected ${issue.expected ?? 'something else'}, found ${issue.received}`,
  );
}
