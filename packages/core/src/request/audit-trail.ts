import { type MultiTxn, OpCode, type WriteRequest } from '@meerkat/protocol';
import type { Audit, AuditEntry, Authenticator } from '../base/ports.ts';
import type { CommittedTxn } from './apply-pace.ts';
import type { Client, WaitingWrite } from './client.ts';
import type { TxnRequest, WritePath } from './write-path.ts';

interface Asked {
  readonly xid: number;
  readonly request: TxnRequest;
}

/**
 * Logs what clients of this server have changed, or tried to change: one entry per znode (`audit.enable`, AuditHelper).
 *
 *     write ──► remembered ──► … its txn is applied ──► entries
 *
 * The server that the client is connected to adds the entry when the txn is applied, even if the client has
 * disconnected since. The request is kept until then, because the txn of a failed request does not contain it.
 */
export class AuditTrail {
  readonly #audit: Audit;
  readonly #authenticator: Authenticator;
  /** Unapplied requests of each client, oldest first. */
  readonly #asked = new WeakMap<Client, Asked[]>();

  constructor(audit: Audit, authenticator: Authenticator) {
    this.#audit = audit;
    this.#authenticator = authenticator;
  }

  /** Wraps a write path and records the requests that pass through it. */
  follow(writes: WritePath): WritePath {
    return {
      get inFlightCount() {
        return writes.inFlightCount;
      },
      get isPreparing() {
        return writes.isPreparing;
      },
      advance: () => writes.advance(),
      write: (client, session, xid, request, ...rest) => {
        this.#remember(client, { xid, request });
        writes.write(client, session, xid, request, ...rest);
      },
      closeSession: (...all) => writes.closeSession(...all),
      sync: (...all) => writes.sync(...all),
      createSession: (...all) => writes.createSession(...all),
      upgradeSession: (...all) => writes.upgradeSession(...all),
    };
  }

  /** A closeSession is about to delete these; called on every server. */
  onEphemeralsDeleted(sessionId: bigint, paths: readonly string[]): void {
    for (const path of paths) {
      const operation = 'ephemeralZNodeDeletionOnSessionCloseOrExpire';
      this.#audit.add({ operation, sessionId, client: null, path, mode: null, acl: null, isSuccess: true });
    }
  }

  onApplied({ header, txn, write }: Omit<CommittedTxn, 'prepared'>): void {
    if (write === null || write.client === null) return;
    const request = this.#recall(write.client, write);
    if (request === null) return;
    const { sessionId } = header;
    const client = this.#describe(write.client);
    const add = (entry: Omit<AuditEntry, 'sessionId' | 'client'>): void =>
      this.#audit.add({ ...entry, sessionId, client });
    if (request.op === OpCode.multi) {
      if (txn.type === OpCode.multi && !hasFailed(txn)) {
        for (const [i, part] of request.ops.entries()) {
          const done = txn.txns[i];
          if (part.op !== OpCode.check && done !== undefined && 'path' in done) add(entryOf(part, done.path, true));
        }
      } else {
        add({ operation: 'multiOperation', path: null, mode: null, acl: null, isSuccess: false });
      }
    } else if (request.op === OpCode.reconfig) {
      const isSuccess = txn.type !== OpCode.error;
      add({ operation: 'reconfig', path: null, mode: null, acl: null, isSuccess });
    } else {
      add('path' in txn ? entryOf(request, txn.path, true) : entryOf(request, request.path, false));
    }
  }

  #remember(client: Client, asked: Asked): void {
    const all = this.#asked.get(client);
    if (all === undefined) this.#asked.set(client, [asked]);
    else all.push(asked);
  }

  /** Writes of a client are applied in order, so requests before the match will never be applied and are dropped. */
  #recall(client: Client, { xid, op }: WaitingWrite): TxnRequest | null {
    const all = this.#asked.get(client) ?? [];
    const at = all.findIndex((asked) => asked.xid === xid && asked.request.op === op);
    return at < 0 ? null : (all.splice(0, at + 1).at(-1)?.request ?? null);
  }

  /** The client's user names, for all its identities, and its host. */
  #describe({ identities, remote }: Client): NonNullable<AuditEntry['client']> {
    const users = identities.map((identity) => this.#authenticator.userName(identity)).filter((user) => user !== '');
    return { users, host: remote.host };
  }
}

function hasFailed({ txns }: MultiTxn): boolean {
  return txns.some(({ type }) => type === OpCode.error);
}

function entryOf(request: WriteRequest, path: string, isSuccess: boolean): Omit<AuditEntry, 'sessionId' | 'client'> {
  switch (request.op) {
    case OpCode.delete:
      return { operation: 'delete', path, mode: null, acl: null, isSuccess };
    case OpCode.setData:
      return { operation: 'setData', path, mode: null, acl: null, isSuccess };
    case OpCode.setACL:
      return { operation: 'setAcl', path, mode: null, acl: request.acl, isSuccess };
    default:
      return { operation: 'create', path, mode: request.flags, acl: null, isSuccess };
  }
}
