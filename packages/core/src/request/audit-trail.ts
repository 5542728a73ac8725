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
 * What clients of this server have changed, or tried to, one entry for each znode (`audit.enable`, AuditHelper).
 *
 *     write ──► remembered ──► … its txn is applied ──► entries
 *
 * The entry is made where the client is connected, when the txn is applied, whether or not the client is still there to be
 * answered. A txn does not say what was asked for when that has failed, so the request is kept until then.
 */
export class AuditTrail {
  readonly #audit: Audit;
  readonly #authenticator: Authenticator;
  /** What is not applied yet of each client, oldest first. It goes with the client. */
  readonly #asked = new WeakMap<Client, Asked[]>();

  constructor(audit: Audit, authenticator: Authenticator) {
    this.#audit = audit;
    this.#authenticator = authenticator;
  }

  /** The same way of writing, on which what is asked for is remembered. */
  follow(writes: WritePath): WritePath {
    return {
      get inFlightCount() {
        return writes.inFlightCount;
      },
      get isPreparing() {
        return writes.isPreparing;
      },
      goOn: () => writes.goOn(),
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

  /** The end of a session is about to delete these, at every server. */
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

  /** Writes of a client are applied in the order in which they came; what is passed over never will be. */
  #recall(client: Client, { xid, op }: WaitingWrite): TxnRequest | null {
    const all = this.#asked.get(client) ?? [];
    const at = all.findIndex((asked) => asked.xid === xid && asked.request.op === op);
    return at < 0 ? null : (all.splice(0, at + 1).at(-1)?.request ?? null);
  }

  /** The names of all that it is known as, its address among them. */
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
