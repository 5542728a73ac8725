import type { Codec } from './codec/codec.ts';
import type { CreateProtectedOptions } from './conveniences/create-protected.ts';
import type { DeleteRecursiveOptions } from './conveniences/delete-recursive.ts';
import type { CreateParentsOptions, EnsurePathOptions } from './conveniences/ensure-path.ts';
import type { ExpectedVersionOptions } from './conveniences/idempotent.ts';
import type { UpdateOptions, UpdateOrCreateOptions } from './conveniences/update.ts';
import { BadArgumentsError } from './errors.ts';
import type { Method } from './methods.ts';
import type { ObserveOptions } from './observe.ts';
import type { CreateOptions, ExpectedVersion, ReconfigOptions, VersionOptions } from './operations.ts';
import type { ConnectOptions } from './options.ts';
import type { About, CallOptions, ReadOptions } from './requester.ts';
import type { RetryOptions } from './retry.ts';
import type { WatchOptions } from './watch-stream.ts';
import type { CreateShape } from './write-requests.ts';

/*
 * A misspelled option would be ignored, and `create(path, data, { ephemeral: true })` would create a persistent znode.
 * In TypeScript the compiler finds that; in JavaScript it is checked here. The types below make the compiler compare
 * each row with the corresponding options.
 */

type Coded = { readonly codec: Codec<unknown> };
type Watching = { readonly watch: boolean };

export type MethodWithOptions = Exclude<Method, 'ping'>;

type Names<T> = { readonly [Name in keyof T]-?: true };

const CALL: Names<CallOptions> = { signal: true, timeoutMs: true };
const READ: Names<ReadOptions> = { ...CALL, read: true };
const WATCHING: Names<ReadOptions & Watching> = { ...READ, watch: true };
const VERSION: Names<VersionOptions> = { ...CALL, version: true };
const SHAPE: Names<CreateShape> = { mode: true, sequential: true, ttlMs: true, acl: true };

/** The options of each method, by its name in errors. */
const NAMES = {
  connect: {
    servers: true,
    chroot: true,
    sessionTimeoutMs: true,
    connectTimeoutMs: true,
    attemptTimeoutMs: true,
    backOff: true,
    signal: true,
    auth: true,
    sasl: true,
    tls: true,
    canBeReadOnly: true,
    session: true,
    requestBytesMax: true,
    replyBytesMax: true,
    transport: true,
    clock: true,
    random: true,
  } satisfies Names<ConnectOptions>,
  whenConnected: CALL,
  moveTo: CALL,
  close: CALL,
  detach: CALL,
  get: { ...WATCHING, codec: true } satisfies Names<ReadOptions & Watching & Coded>,
  exists: WATCHING,
  children: WATCHING,
  hasLeasedAnswers: CALL,
  descendantCount: CALL,
  ephemerals: CALL,
  getAcl: CALL,
  multiRead: READ,
  create: { ...CALL, ...SHAPE, codec: true } satisfies Names<CreateOptions & Coded>,
  set: { ...VERSION, codec: true } satisfies Names<VersionOptions & Coded>,
  delete: VERSION,
  setAcl: VERSION,
  createParents: { ...CALL, ...SHAPE, parentMode: true, parentAcl: true } satisfies Names<CreateParentsOptions>,
  ensurePath: { ...CALL, acl: true, mode: true } satisfies Names<EnsurePathOptions>,
  createProtected: { ...CALL, ...SHAPE, mark: true } satisfies Names<CreateProtectedOptions>,
  setIdempotent: VERSION satisfies Names<ExpectedVersionOptions>,
  deleteIdempotent: VERSION satisfies Names<ExpectedVersionOptions>,
  update: { ...CALL, ...SHAPE, codec: true, idempotent: true, create: true } satisfies Names<
    UpdateOptions & UpdateOrCreateOptions & Coded
  >,
  deleteRecursive: { ...CALL, onProgress: true } satisfies Names<DeleteRecursiveOptions>,
  transaction: CALL,
  'transaction.create': SHAPE,
  'transaction.check': { version: true } satisfies Names<ExpectedVersion>,
  retry: { signal: true, idempotent: true } satisfies Names<RetryOptions>,
  sync: CALL,
  whoAmI: CALL,
  config: READ,
  reconfig: {
    ...CALL,
    joining: true,
    leaving: true,
    members: true,
    fromVersion: true,
  } satisfies Names<ReconfigOptions>,
  watch: { recursive: true, bufferMax: true, signal: true } satisfies Names<WatchOptions>,
  observe: { signal: true } satisfies Names<ObserveOptions>,
  checkWatches: CALL,
  removeWatches: CALL,
} satisfies { readonly [Method in MethodWithOptions]: object };

/** Boolean options of all methods: a listener passed as `watch`, for instance, would never be called. */
const SWITCHES: ReadonlySet<string> = new Set(['watch', 'sequential', 'recursive', 'idempotent', 'canBeReadOnly']);

/** @throws BadArgumentsError for an option that the method does not have, or for options of another type */
export function checkOptions(method: MethodWithOptions, options: object | undefined, about: About): void {
  const detail = wrongOption(method, options);
  if (detail !== null) throw new BadArgumentsError({ ...about, detail });
}

/** @returns what is wrong with the options; null when nothing is */
export function wrongOption(method: MethodWithOptions, options: object | undefined): string | null {
  if (options === undefined) return null;
  const known: Readonly<Record<string, unknown>> = NAMES[method];
  if (typeof options !== 'object' || options === null) {
    return `options are an object with some of ${Object.keys(known).join(', ')}, not ${String(options)}`;
  }
  for (const name in options) {
    if (known[name] !== true) return `there is no option '${name}'; ${adviceFor(name, Object.keys(known))}`;
    if (!SWITCHES.has(name)) continue;
    const value = options[name as keyof typeof options] as unknown;
    if (value !== undefined && typeof value !== 'boolean') return wrongSwitch(name, value);
  }
  return null;
}

function wrongSwitch(name: string, value: unknown): string {
  const found = `the option ${name} is true or false, not a ${typeof value}`;
  return name === 'watch' ? `${found}; with true, \`changed\` of the result is a promise of the event` : found;
}

/** Names of our options in other clients. */
const OTHER_NAMES: Readonly<Record<string, { readonly option: string; readonly advice: string }>> = {
  ephemeral: { option: 'mode', advice: "an ephemeral znode is created with mode: 'ephemeral'" },
  container: { option: 'mode', advice: "a container is created with mode: 'container'" },
  sequence: { option: 'sequential', advice: 'it is called sequential' },
  makepath: { option: 'parentMode', advice: 'parents are created by createParents' },
  timeout: { option: 'timeoutMs', advice: 'it is called timeoutMs, in milliseconds' },
  hosts: { option: 'servers', advice: 'it is called servers' },
  readOnly: { option: 'canBeReadOnly', advice: 'it is called canBeReadOnly' },
};

function adviceFor(name: string, known: readonly string[]): string {
  const other = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : undefined;
  if (other !== undefined && known.includes(other.option)) return other.advice;
  const lower = name.toLowerCase();
  const near = known.find((option) => {
    const candidate = option.toLowerCase();
    return candidate.startsWith(lower) || lower.startsWith(candidate);
  });
  if (near !== undefined) return `did you mean ${near}?`;
  return known.length === 0 ? 'there are none' : `there are ${known.join(', ')}`;
}
