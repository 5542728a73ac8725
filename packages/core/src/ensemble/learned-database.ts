/**
 * The database of a learner before it serves, in the state that the leader asks for:
 *
 *     kept ──────────────┐
 *     truncated ─────────┼──► onReady, once
 *     received, installed┘
 *
 * It is durable when it is ready.
 */
import type { Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Durable } from '../base/durable.ts';
import type { Database } from '../tree/database.ts';
import type { RecoveredState } from './member.ts';
import type { RoleHost } from './role-host.ts';

export interface LearnedDatabaseEvents {
  /** @param lastZxid the end of its history */
  onReady(database: Database, lastZxid: Durable<Zxid>): void;
  /** The log cannot be truncated where the leader asks for it. */
  onTruncateRefused(reason: string): void;
}

export class LearnedDatabase {
  readonly #host: Pick<RoleHost, 'storage' | 'turn' | 'servings'>;
  readonly #events: LearnedDatabaseEvents;
  readonly #startsEmpty: boolean;
  /** Where the history on disk ended when the role began. */
  readonly #historyEnd: Durable<Zxid>;
  #database: Database;
  /** The database filled from the leader's snapshot, until it is installed. */
  #received: Database | null = null;
  #wasTruncateRefused = false;

  /** @param startsEmpty start empty, as the history on disk cannot be reconciled with the leader's */
  constructor(
    host: Pick<RoleHost, 'storage' | 'turn' | 'servings'>,
    state: RecoveredState,
    startsEmpty: boolean,
    events: LearnedDatabaseEvents,
  ) {
    this.#host = host;
    this.#events = events;
    this.#startsEmpty = startsEmpty;
    this.#historyEnd = state.history.lastZxid;
    this.#database = startsEmpty ? host.servings.makeDatabase() : state.database;
  }

  get current(): Database {
    return this.#database;
  }

  get wasTruncateRefused(): boolean {
    return this.#wasTruncateRefused;
  }

  /** The leader's snapshot has been received completely; `installReceived` makes it the database. */
  receive(database: Database): void {
    this.#received = database;
  }

  keep(): void {
    // What is on disk is unusable: an empty snapshot replaces it, and the leader sends everything.
    if (this.#startsEmpty) this.#install(this.#database);
    else this.#host.turn.defer(() => this.#become(this.#database, this.#historyEnd));
  }

  truncate(zxid: Zxid): void {
    this.#host.storage.truncate(zxid, {
      onTruncated: (database, history) => this.#become(database, history.lastZxid),
      onTruncateRefused: (reason) => {
        this.#wasTruncateRefused = true;
        this.#events.onTruncateRefused(reason);
      },
    });
  }

  installReceived(): void {
    assert(this.#received !== null, 'a snapshot is installed after it has been received');
    this.#install(this.#received);
    this.#received = null;
  }

  #install(database: Database): void {
    this.#host.storage.installSnapshot(database, (lastZxid) => this.#become(database, lastZxid));
  }

  #become(database: Database, lastZxid: Durable<Zxid>): void {
    this.#database = database;
    this.#events.onReady(database, lastZxid);
  }
}
