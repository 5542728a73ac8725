import {
  type AnyZooKeeperError,
  type Client,
  type Created,
  isZooKeeperError,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
  text,
  type WatchEvent,
  type ZooKeeperCode,
} from '@meerkat/client';
import type {
  History,
  MultiPart,
  Operation,
  OperationRequest,
  OperationResult,
  PartResult,
  ReadRequest,
  WriteRequest,
} from './history.ts';
import type { HistoryTap } from './history-tap.ts';

/** Calls a client, and records each request and its outcome in the history. Never rejects with a client's error. */
export class RecordedClient {
  readonly client: Client;
  readonly #host: string;
  readonly #history: History;
  readonly #tap: HistoryTap;

  constructor(client: Client, host: string, history: History, tap: HistoryTap) {
    this.client = client;
    this.#host = host;
    this.#history = history;
    this.#tap = tap;
    client.onState(({ state, sessionId, sameSession, reason }) =>
      history.note({ kind: 'state', client: host, state, sessionId, sameSession, reason }),
    );
  }

  /** @param timeoutMs after which the reply is no longer waited for; null: no limit */
  call(request: OperationRequest, timeoutMs: number | null = null): Promise<Operation> {
    const operation = this.#invoke(request);
    return this.#settle(operation, this.#run(operation, timeoutMs ?? undefined));
  }

  /** A persistent watch, recorded until `end` is called. */
  watch(path: string, isRecursive: boolean): { readonly armed: Promise<Operation>; readonly end: () => void } {
    const stream = this.client.watch(path, { recursive: isRecursive });
    const operation = this.#invoke({ op: 'watch', path, isRecursive });
    const armed = this.#settle(
      operation,
      stream.ready.then((): OperationResult => ({ op: 'watch' })),
    );
    const record = async (): Promise<void> => {
      for await (const event of stream) {
        if (event.type === 'gap') this.#record(operation, { type: 'gap', path: '', zxid: null });
        else this.#record(operation, event);
      }
    };
    // A watch that could not be armed rejects here a second time.
    record().catch(rethrowOwn);
    const end = (): void => {
      this.#history.unwatch(operation);
      // It never rejects.
      void stream.close();
    };
    return { armed, end };
  }

  /** Ends the session; its outcome is unknown without a reply. */
  async close(): Promise<Operation> {
    const operation = this.#invoke({ op: 'close' });
    await this.client.close();
    this.#tap.onEnded(operation);
    if (operation.replyOrder !== null) this.#history.complete(operation, { op: 'close' });
    else this.#history.fail(operation, { code: 'CONNECTIONLOSS', outcome: 'unknown', failedPart: null });
    return operation;
  }

  async #run(operation: Operation, timeoutMs: number | undefined): Promise<OperationResult> {
    const { client } = this;
    const { request } = operation;
    switch (request.op) {
      case 'create':
      case 'set':
      case 'delete':
      case 'setAcl':
        return this.#write(request, timeoutMs);
      case 'get':
      case 'exists':
      case 'children':
        return this.#read(operation, request, timeoutMs);
      case 'multi': {
        const results = await addParts(client.transaction(), request.parts).commit({ timeoutMs });
        return { op: 'multi', results: request.parts.map((part, i) => partResultOf(part, results[i] ?? null)) };
      }
      case 'sync':
        await client.sync(request.path, { timeoutMs });
        return { op: 'sync' };
      case 'watch':
      case 'close':
        throw new Error(`${request.op} has a method of its own`);
    }
  }

  async #write(request: WriteRequest, timeoutMs: number | undefined): Promise<OperationResult> {
    switch (request.op) {
      case 'create': {
        const { path, data, mode, isSequential, ttlMs, acl } = request;
        const options = { mode, sequential: isSequential, ttlMs, acl, timeoutMs };
        const created: Created = await this.client.create(path, data, options);
        return { op: 'create', path: created.path, stat: created.stat };
      }
      case 'set': {
        const { path, data, version } = request;
        return { op: 'set', stat: await this.client.set(path, data, { version, timeoutMs }) };
      }
      case 'setAcl': {
        const { path, acl, version } = request;
        return { op: 'setAcl', stat: await this.client.setAcl(path, acl, { version, timeoutMs }) };
      }
      case 'delete':
        await this.client.delete(request.path, { version: request.version, timeoutMs });
        return { op: 'delete' };
    }
  }

  async #read(operation: Operation, request: ReadRequest, timeoutMs: number | undefined): Promise<OperationResult> {
    const { path, hasWatch, isLinearizable } = request;
    const options = { read: isLinearizable ? 'linearizable' : 'local', timeoutMs } as const;
    switch (request.op) {
      case 'get': {
        if (!hasWatch) return { op: 'get', ...(await this.client.get(path, { ...options, codec: text })) };
        const { data, stat, changed } = await this.client.get(path, { ...options, codec: text, watch: true });
        this.#follow(operation, changed);
        return { op: 'get', data, stat };
      }
      case 'exists': {
        if (!hasWatch) return { op: 'exists', stat: await this.client.exists(path, options) };
        const { stat, changed } = await this.client.exists(path, { ...options, watch: true });
        this.#follow(operation, changed);
        return { op: 'exists', stat };
      }
      case 'children': {
        if (!hasWatch) {
          const { children: names, stat } = await this.client.children(path, options);
          return { op: 'children', names, stat };
        }
        const { children: names, stat, changed } = await this.client.children(path, { ...options, watch: true });
        this.#follow(operation, changed);
        return { op: 'children', names, stat };
      }
    }
  }

  #follow(operation: Operation, changed: Promise<WatchEvent>): void {
    changed.then((event) => this.#record(operation, event)).catch(rethrowOwn);
  }

  #record(
    operation: Operation,
    event: { readonly type: WatchEvent['type'] | 'gap'; readonly path: string; readonly zxid: bigint | null },
  ): void {
    const zxid = event.zxid === null ? null : Number(event.zxid);
    this.#history.note({ kind: 'notified', client: this.#host, operation, type: event.type, path: event.path, zxid });
  }

  #invoke(request: OperationRequest): Operation {
    const operation = this.#history.invoke(this.#host, request);
    this.#tap.onInvoked(operation);
    return operation;
  }

  async #settle(operation: Operation, outcome: Promise<OperationResult>): Promise<Operation> {
    try {
      const result = await outcome;
      this.#history.complete(operation, result);
    } catch (error) {
      if (!isZooKeeperError(error)) throw error;
      const failedPart = error instanceof TransactionError ? error.index : null;
      this.#history.fail(operation, { code: codeOf(error), outcome: error.outcome, failedPart });
    }
    this.#tap.onEnded(operation);
    return operation;
  }
}

/** For a transaction: why the part was refused. */
function codeOf(error: AnyZooKeeperError): ZooKeeperCode {
  return error instanceof TransactionError && isZooKeeperError(error.cause) ? error.cause.code : error.code;
}

function addParts(
  transaction: Transaction<TransactionResult[]>,
  parts: readonly MultiPart[],
): Transaction<TransactionResult[]> {
  for (const part of parts) {
    switch (part.op) {
      case 'create':
        transaction.create(part.path, part.data, {
          mode: part.mode,
          sequential: part.isSequential,
          ttlMs: part.ttlMs,
          acl: part.acl,
        });
        break;
      case 'set':
        transaction.set(part.path, part.data, { version: part.version });
        break;
      case 'delete':
        transaction.delete(part.path, { version: part.version });
        break;
      case 'check':
        transaction.check(part.path, { version: part.version });
    }
  }
  return transaction;
}

function partResultOf(part: MultiPart, result: TransactionResult): PartResult {
  if (result === null) return { op: part.op === 'check' ? 'check' : 'delete' };
  if ('path' in result) return { op: 'create', path: result.path, stat: result.stat };
  const stat: Stat = result;
  return { op: 'set', stat };
}

/** Errors of the client are expected; any other is a bug. */
function rethrowOwn(error: unknown): void {
  if (!isZooKeeperError(error)) throw error;
}
