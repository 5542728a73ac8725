/**
 * The database of a learner until it serves, as the leader wants it to begin with:
 *
 *     kept ──────────────┐
 *     truncated ─────────┼──► onReady, once
 *     received, installed┘
 *
 * What it holds is on the disk when it is ready.
 */
import type { Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Durable } from '../base/durable.ts';
import type { Database } from '../tree/database.ts';
import type { RecoveredState } from './member.ts';
import type { RoleHost } from './role-host.ts';

export interface LearnedDatabaseEvents {
  /** @param lastZxid where its history ends */
  onReady(database: Database, lastZxid: Durable<Zxid>): void;
  /** The log cannot be cut where the leader wants it. */
  onTruncateRefused(reason: string): void;
}

export class LearnedDatabase {
  readonly #host: Pick<RoleHost, 'storage' | 'turn' | 'servings'>;
  readonly #events: LearnedDatabaseEvents;
  readonly #isAnew: boolean;
  /** Where the history on the disk ended when the role began. */
  readonly #historyEnd: Durable<Zxid>;
  #database: Database;
  /** The one that a snapshot of the leader's has filled, until it is installed. */
  #received: Database | null = null;
  #wasTruncateRefused = false;

  /** @param isAnew the history on the disk cannot be brought to the leader's: it begins with nothing */
  constructor(
    host: Pick<RoleHost, 'storage' | 'turn' | 'servings'>,
    state: RecoveredState,
    isAnew: boolean,
    events: LearnedDatabaseEvents,
  ) {
    this.#host = host;
    this.#events = events;
    this.#isAnew = isAnew;
    this.#historyEnd = state.history.lastZxid;
    this.#database = isAnew ? host.servings.makeDatabase() : state.database;
  }

  get current(): Database {
    return this.#database;
  }

  get wasTruncateRefused(): boolean {
    return this.#wasTruncateRefused;
  }

  /** A snapshot of the leader's is there as a whole; `installReceived` makes it the database. */
  receive(database: Database): void {
    this.#received = database;
  }

  keep(): void {
    // What is on the disk is of no use: an empty snapshot takes its place, and the leader sends everything.
    if (this.#isAnew) this.#install(this.#database);
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
