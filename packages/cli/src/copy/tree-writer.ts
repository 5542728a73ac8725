import {
  type Acl,
  type CallOptions,
  type Client,
  type CreateShape,
  InvalidAclError,
  isZooKeeperError,
  OPEN,
  Perm,
  RequestTooLargeError,
  TransactionError,
  UnimplementedError,
} from '@meerkat/client';
import { byteCount } from '../output/stat-columns.ts';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import type { Step } from './plan.ts';
import { absolutePath, isBelow, PASSAGE_PERMS, type TreeEntry } from './tree-entry.ts';

/** What a step of a plan does to the target. */
export type WriteStep = Extract<Step, { action: 'create' | 'change' | 'finish' | 'replace' | 'delete' }>;

/** Far below what servers take in one request (jute.maxbuffer, 1 MiB by default). Bytes. */
const BATCH_BYTES_MAX = 256 * 1024;
const BATCH_OPERATIONS_MAX = 250;
/** Requests in flight at once. */
const IN_FLIGHT_MAX = 12;
/** What an operation takes besides its path and data, roughly: header, ACL, flags. Bytes. */
const OPERATION_BYTES = 64;

type CreatingStep = Extract<WriteStep, { action: 'create' | 'replace' }>;

interface Leaving {
  readonly path: string;
  readonly acl: readonly Acl[];
  readonly completes: Operation['completes'];
}

/** Learns of steps that have happened, in their order. @param path the last one's, absolute */
export type OnWritten = (path: string, actions: readonly WriteStep['action'][]) => void;

type Write = (transaction: ReturnType<Client['transaction']>) => unknown;

interface Operation {
  readonly path: string;
  /** Which step has happened with it; null for a part of a step that is not all of it. */
  readonly completes: WriteStep['action'] | null;
  readonly bytes: number;
  /** By itself, when nothing else goes with it: the request is as small as it can be then. */
  readonly alone: (client: Client, call: CallOptions) => Promise<unknown>;
  readonly together: Write;
}

/**
 * Carries out the steps of a plan: in transactions of some hundred operations, several in flight. The service keeps the
 * order of a session's requests, so that a parent is there before its children are looked at.
 *
 * A parent in which not every client may create gets its ACL when everything below it is there. Until then its entries
 * are joined by one that lets this session create children and set the ACL.
 */
export class TreeWriter {
  readonly #client: Client;
  readonly #root: string;
  /** Without the signal: what has been sent is waited for, so that the result is known. */
  readonly #call: CallOptions;
  /** Rejects at Ctrl-C. */
  readonly #aborted: Promise<never>;
  readonly #onDone: OnWritten;
  readonly #batch: Operation[] = [];
  #batchBytes = 0;
  readonly #inFlight: Set<Promise<void>> = new Set();
  #failure: { readonly error: unknown } | null = null;
  /** The outcome of a request is not known. */
  #hasDoubt = false;
  /** Waits for the next step, which says whether something comes below it. */
  #held: CreatingStep | null = null;
  /** ACLs to be set on the way out, each of a znode below the one before. */
  readonly #leaving: Leaving[] = [];
  #passage: Promise<readonly Acl[]> | null = null;

  constructor(client: Client, root: string, call: CallOptions, onDone: OnWritten) {
    this.#client = client;
    this.#root = root;
    this.#call = { timeoutMs: call.timeoutMs };
    this.#aborted = rejectWhenAborted(call.signal);
    this.#onDone = onDone;
  }

  /** @throws the error of an earlier step */
  async add(step: WriteStep): Promise<void> {
    await this.#release(step.path);
    await this.#leave(step.path);
    if (step.action === 'create' || step.action === 'replace') {
      // Most ACLs are open.
      if (isOpenToChildren(aclOf(step.entry))) await this.#create(step, aclOf(step.entry));
      else this.#held = step;
    } else if (step.action === 'delete') {
      await this.#push(deletion(absolutePath(this.#root, step.path), 'delete'));
    } else if (step.action === 'finish') {
      this.#leaving.push({ path: step.path, acl: aclOf(step.entry), completes: 'finish' });
    } else {
      const path = absolutePath(this.#root, step.path);
      if (step.what.includes('data')) await this.#push(change(path, step.entry));
      if (step.what.includes('acl')) {
        const completes = step.what.includes('data') ? null : 'change';
        this.#leaving.push({ path: step.path, acl: aclOf(step.entry), completes });
      }
    }
  }

  /** Resolves when everything has happened. */
  async end(): Promise<void> {
    await this.#release(null);
    await this.#leave(null);
    await this.#send();
    await Promise.race([Promise.all(this.#inFlight), this.#aborted]);
    this.#throwFailure();
  }

  /** More changes than were reported may have been made. */
  get isInDoubt(): boolean {
    return this.#hasDoubt || this.#inFlight.size > 0;
  }

  /** Waits until nothing is in flight, whatever the outcome. */
  async settle(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  async #release(next: string | null): Promise<void> {
    const step = this.#held;
    if (step === null) return;
    this.#held = null;
    const acl = aclOf(step.entry);
    if (next === null || !isBelow(next, step.path)) return await this.#create(step, acl);
    this.#passage ??= findPassage(this.#client, this.#call);
    const passage = await this.#passage;
    await this.#create(step, [...acl, ...passage]);
    if (passage.length > 0) this.#leaving.push({ path: step.path, acl, completes: null });
  }

  async #leave(next: string | null): Promise<void> {
    for (;;) {
      const last = this.#leaving.at(-1);
      if (last === undefined || (next !== null && isBelow(next, last.path))) return;
      this.#leaving.pop();
      // A transaction cannot set an ACL: flush the steps before it first.
      await this.#send();
      const path = absolutePath(this.#root, last.path);
      const { acl, completes } = last;
      await this.#begin([{ path, completes, bytes: 0 }], () => this.#client.setAcl(path, acl, this.#call));
    }
  }

  async #create(step: CreatingStep, acl: readonly Acl[]): Promise<void> {
    const path = absolutePath(this.#root, step.path);
    if (step.action === 'replace') await this.#push(deletion(path, null));
    await this.#push(creation(path, step, acl));
  }

  async #push(operation: Operation): Promise<void> {
    const isFull = this.#batch.length >= BATCH_OPERATIONS_MAX || this.#batchBytes + operation.bytes > BATCH_BYTES_MAX;
    if (isFull) await this.#send();
    this.#throwFailure();
    this.#batch.push(operation);
    this.#batchBytes += operation.bytes;
  }

  async #send(): Promise<void> {
    const operations = this.#batch.splice(0);
    this.#batchBytes = 0;
    const [first] = operations;
    if (first === undefined) return;
    await this.#begin(operations, () => {
      if (operations.length === 1) return first.alone(this.#client, this.#call);
      const transaction = this.#client.transaction();
      for (const { together } of operations) together(transaction);
      return transaction.commit(this.#call);
    });
  }

  async #begin(operations: readonly Sent[], request: () => Promise<unknown>): Promise<void> {
    while (this.#inFlight.size >= IN_FLIGHT_MAX) await Promise.race([...this.#inFlight, this.#aborted]);
    this.#throwFailure();
    const done = request().then(
      () => {
        const actions = operations.map(({ completes }) => completes).filter((action) => action !== null);
        this.#onDone(operations.at(-1)?.path ?? '', actions);
      },
      (error: unknown) => {
        this.#hasDoubt ||= isZooKeeperError(error) && error.outcome === 'unknown';
        this.#failure ??= { error: explain(error, operations) };
      },
    );
    this.#inFlight.add(done);
    void done.then(() => this.#inFlight.delete(done));
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}

function rejectWhenAborted(signal: AbortSignal | undefined): Promise<never> {
  const aborted = new Promise<never>((_, reject) => {
    const abort = (): void => reject(new DOMException('interrupted', 'AbortError'));
    if (signal?.aborted === true) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
  // There may be no waiter.
  aborted.catch(() => {});
  return aborted;
}

type Sent = Pick<Operation, 'path' | 'completes' | 'bytes'>;

/** An empty list cannot be sent; on a server that has one it allows everything. */
function aclOf({ acl }: TreeEntry): readonly Acl[] {
  return acl === null || acl.length === 0 ? OPEN : acl;
}

function isOpenToChildren(acl: readonly Acl[]): boolean {
  return acl.some(({ scheme, id, perms }) => scheme === 'world' && id === 'anyone' && (perms & Perm.create) !== 0);
}

/** The entries that let this session, and as few others as can be, create children and set the ACL. */
async function findPassage(client: Client, call: CallOptions): Promise<readonly Acl[]> {
  const perms = PASSAGE_PERMS;
  try {
    const identities = await client.whoAmI(call);
    if (identities.some(({ scheme }) => scheme === 'super')) return [];
    if (identities.some(({ scheme }) => scheme !== 'ip')) return [{ scheme: 'auth', id: '', perms }];
    return identities.map(({ scheme, user }) => ({ scheme, id: user, perms }));
  } catch (error) {
    // Servers before 3.7 do not say.
    if (error instanceof UnimplementedError) return [{ scheme: 'world', id: 'anyone', perms }];
    throw error;
  }
}

function creation(path: string, { action, entry }: CreatingStep, acl: readonly Acl[]): Operation {
  const { data } = entry;
  const shape: CreateShape = { acl, ...kindOf(entry) };
  return {
    path,
    completes: action,
    bytes: path.length + (data?.length ?? 0) + OPERATION_BYTES * (1 + acl.length),
    alone: (client, call) => client.create(path, data, { ...shape, ...call }),
    together: (transaction) => transaction.create(path, data, shape),
  };
}

/** The whole name is given, sequence number included: nothing is appended to it. */
function kindOf({ kind, ttlMs }: TreeEntry): CreateShape {
  if (kind === 'container') return { mode: 'container' };
  return kind === 'ttl' && ttlMs !== null ? { ttlMs } : {};
}

function change(path: string, { data }: TreeEntry): Operation {
  return {
    path,
    completes: 'change',
    bytes: path.length + (data?.length ?? 0) + OPERATION_BYTES,
    alone: (client, call) => client.set(path, data, call),
    together: (transaction) => transaction.set(path, data),
  };
}

function deletion(path: string, completes: Operation['completes']): Operation {
  return {
    path,
    completes,
    bytes: path.length + OPERATION_BYTES,
    alone: (client, call) => client.delete(path, call),
    together: (transaction) => transaction.delete(path),
  };
}

/** The transaction is an implementation detail of the copy: what refused it is what counts. */
function explain(error: unknown, [first]: readonly Sent[]): unknown {
  const refused = error instanceof TransactionError ? error.cause : error;
  if (refused instanceof InvalidAclError) {
    const message = `the target does not take the ACL of ${refused.path}: it has no such scheme, or no such id; --no-acl leaves ACLs out`;
    return new CommandFailure(CommandExit.invalidAcl, message, refused);
  }
  if (error instanceof TransactionError) return refused;
  if (!(error instanceof RequestTooLargeError) || first === undefined) return error;
  const size = byteCount(first.bytes);
  const message = `cannot write ${first.path}: with ${size} it is more than the target takes in one request (jute.maxbuffer)`;
  return new CommandFailure(CommandExit.tooLarge, message, error);
}
