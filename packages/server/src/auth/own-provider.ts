import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Identity, PeerAddress } from '@meerkat/core';
import { ExitCode, ServerError } from '../exit-codes.ts';
import type { Logger } from '../logger.ts';
import { isSingleFile } from '../single-file.ts';
import type { Scheme } from './scheme.ts';

/**
 * A scheme of authentication of the user's own: the default export of a module that `authProvider.N` names, or what that export
 * returns when it is a function.
 *
 * Its methods are called while the server does nothing else, so they answer at once. One that throws refuses.
 */
export interface AuthProvider {
  /** Its name, in auth packets and in ACLs. */
  readonly scheme: string;
  /** Whether its identities stand in for `auth` entries of ACLs. Default true. */
  readonly isAuthenticated?: boolean;
  /**
   * Checks what a client offers, and says as whom it is known from then on: ids of this scheme, or the scheme `super` with an
   * empty id. null refuses, which closes the connection.
   */
  authenticate(auth: Uint8Array | null, remote: PeerAddress): readonly Identity[] | null;
  /** Whether an ACL entry may have this id. Default: every id but the empty one. */
  isValidAclId?(id: string): boolean;
  /** Whether an identity is meant by the id of an ACL entry. Default: equality. */
  matches?(identityId: string, aclId: string): boolean;
  /** What whoAmI shows of an id. Default: the id. */
  userName?(id: string): string;
}

/** Schemes that are there already, or mean something by themselves. */
const TAKEN: ReadonlySet<string> = new Set([
  '',
  'auth',
  'digest',
  'ensemble',
  'ip',
  'key',
  'sasl',
  'super',
  'world',
  'x509',
]);

/**
 * Loads the modules.
 *
 * @throws ServerError with the path of one that cannot be used
 */
export async function loadOwnProviders(paths: readonly string[], logger: Logger): Promise<ReadonlyMap<string, Scheme>> {
  const schemes = new Map<string, Scheme>();
  for (const path of paths) {
    const provider = await loadProvider(path);
    const { scheme } = provider;
    if (TAKEN.has(scheme) || schemes.has(scheme))
      throw refusal(path, `it is for the scheme "${scheme}", which is taken`);
    schemes.set(scheme, guard(provider, path, logger));
  }
  return schemes;
}

async function loadProvider(path: string): Promise<AuthProvider> {
  let found: unknown;
  try {
    const module = await loadModule(path);
    found = typeof module.default === 'function' ? await (module.default as () => unknown)() : module.default;
  } catch (error) {
    throw refusal(path, error instanceof Error ? error.message : String(error), error);
  }
  const fault = faultOf(found);
  if (fault !== null) throw refusal(path, fault);
  return found as AuthProvider;
}

/** A single executable can `import` only what it contains; its `require` takes modules of both kinds. */
async function loadModule(path: string): Promise<{ readonly default?: unknown }> {
  if (!isSingleFile()) return await import(pathToFileURL(path).href);
  const exports: { readonly default?: unknown } = createRequire(path)(path);
  // The default export of a CommonJS module is all of it.
  return exports.default === undefined ? { default: exports } : exports;
}

function faultOf(found: unknown): string | null {
  if (typeof found !== 'object' || found === null) return 'its default export is no object';
  const provider = found as Readonly<Record<string, unknown>>;
  if (typeof provider['scheme'] !== 'string') return 'its default export has no text "scheme"';
  if (typeof provider['authenticate'] !== 'function') return 'its default export has no method "authenticate"';
  for (const name of ['isValidAclId', 'matches', 'userName']) {
    if (!['function', 'undefined'].includes(typeof provider[name]))
      return `"${name}" of its default export is no method`;
  }
  return null;
}

function refusal(path: string, what: string, cause?: unknown): ServerError {
  const message = `cannot use ${path} (authProvider) for authentication: ${what}; correct it, or take its line out of the configuration`;
  return new ServerError(ExitCode.invocation, message, cause);
}

/** A provider that throws, or answers with what is no identity of its own, refuses and is told of in the log. */
function guard(provider: AuthProvider, path: string, logger: Logger): Scheme {
  const attempt = <T>(method: string, call: () => T, otherwise: T): T => {
    try {
      return call();
    } catch (error) {
      logger.log(
        'error',
        `${path} (authProvider): ${method} failed: ${error instanceof Error ? error.message : String(error)}`,
      );
      return otherwise;
    }
  };
  return {
    isAuthenticated: provider.isAuthenticated ?? true,
    isExact: provider.matches === undefined,
    authenticate: (auth, remote) =>
      attempt('authenticate', () => checkIdentities(provider.authenticate(auth, remote), provider.scheme), null),
    isValidAclId: (id) => attempt('isValidAclId', () => provider.isValidAclId?.(id) ?? id !== '', false) === true,
    matches: (identityId, aclId) =>
      attempt('matches', () => provider.matches?.(identityId, aclId) ?? identityId === aclId, false) === true,
    userName: (id) => String(attempt('userName', () => provider.userName?.(id) ?? id, '')),
  };
}

function checkIdentities(found: unknown, own: string): readonly Identity[] | null {
  if (found === null) return null;
  if (!Array.isArray(found)) throw new Error('it answered neither with null nor with a list of identities');
  return found.map((each: unknown) => {
    const { scheme, id } = (each ?? {}) as Partial<Identity>;
    const isOwn = scheme === own || (scheme === 'super' && id === '');
    if (!isOwn || typeof id !== 'string') throw new Error(`it answered with what is no identity of the scheme ${own}`);
    return { scheme, id };
  });
}
