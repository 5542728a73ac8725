import {
  type About,
  bytes,
  type CallOptions,
  type Client,
  type Codec,
  DecodeError,
  joinPath,
  NoNodeError,
  nameOf,
  nullableBytes,
  SessionLostError,
  type Transaction,
  TransactionError,
  type TransactionResult,
  type ZooKeeperError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { asDoubtful } from '../kernel/doubt.ts';
import { ignoreMissing, isPassing } from '../kernel/failures.ts';
import { makeMark } from '../kernel/layout.ts';
import { LossStreak } from '../kernel/loss-streak.ts';
import { createOwned, type OwnedZnode } from '../kernel/owned-znode.ts';
import { removeZnode } from '../kernel/removal.ts';
import { compareBySequence, compareSequences, sequenceOf, withoutSequence } from '../kernel/sequence.ts';
import { type Arrival, readMeeting, writeMeeting } from './meeting-record.ts';
import { isRace } from './ready.ts';

/*
 * A fixed number of parties meet, each brings a value, all see all values, and they continue: round after round.
 *
 *     /meeting
 *       _c_5b2f…-arrival-0000000004              a waiting party: ephemeral; holds its value
 *       _c_0d1e…-arrival-0000000006              the next one (5 has cancelled)
 *       meeting-0000000001-0000000003            the values of the last round, for parties that have not read them yet
 *
 * An arriving client lists the children once. If there are enough that have not met yet, the oldest of them meet: one
 * transaction creates the record and writes each of their znodes, at the version of its creation. So a party meets
 * once, it existed at the moment of the meeting, and it watches its own znode only: n parties cost n events per round.
 *
 * A record is deleted when no party of it is left: a client that has read it deletes its own arrival and checks.
 */

export interface RendezvousOptions<T> {
  /** How values are stored in a znode. Default: bytes. */
  readonly codec?: Codec<T> | undefined;
}

export interface Meeting<T> {
  /** The values of all parties, in order of arrival. */
  readonly values: readonly T[];
  /** The index of our own value. */
  readonly index: number;
  /** Larger than that of every earlier round, and the same for all parties of a round. */
  readonly round: bigint;
}

/**
 * A place where a fixed number of parties exchange values and continue. All values of a round together have to fit into
 * one znode: 1 MiB, unless the servers are configured otherwise.
 *
 * @example
 * const rendezvous = new Rendezvous<string>(client, '/addresses', 3, { codec: text });
 * const { values } = await rendezvous.meet('10.0.0.7:9000'); // the addresses of all three
 */
export class Rendezvous<T = Uint8Array> {
  readonly path: string;
  readonly partyCount: number;
  readonly #client: Client;
  readonly #codec: Codec<T>;
  /** Name prefixes of arrivals that may still exist although their calls have ended. */
  readonly #leftovers = new Set<string>();

  constructor(client: Client, path: string, partyCount: number, options: RendezvousOptions<T> = {}) {
    if (!Number.isInteger(partyCount) || partyCount < 1) {
      throw new RangeError(`at least one party meets, not ${partyCount}`);
    }
    this.path = path;
    this.partyCount = partyCount;
    this.#client = client;
    // Without a codec T is Uint8Array.
    this.#codec = options.codec ?? (bytes as unknown as Codec<T>);
  }

  /**
   * Brings a value, and waits until enough parties have.
   *
   * @throws AbortedError, TimeoutError: the others do not wait for us, but may have seen our value if it arrived at the
   *   last moment (outcome 'unknown'; 'not-applied' if we have not even arrived); SessionLostError, outcome 'unknown',
   *   when the session ended while we waited; ClosedError likewise; NoNodeError, outcome 'unknown', when another client
   *   has deleted our arrival; DecodeError when we have met and cannot decode one of the values; RequestTooLargeError
   *   when servers do not accept all values together
   */
  async meet(value: T, options: CallOptions = {}): Promise<Meeting<T>> {
    const about = { operation: 'Rendezvous.meet', path: this.path };
    const attempt = new Attempt(this.#client, options, about);
    const data = this.#codec.encode(value);
    await this.#clear(attempt);
    const party = await this.#arrive(data, attempt);
    let hasMet = false;
    try {
      // The last party does it for the others, so it does not stop at the caller's limit; but if that has passed
      // already, no caller would handle its rejection.
      attempt.next();
      await attempt.waitFor(this.#convene(about));
      while (!party.lost.aborted) {
        using own = await attempt.through((call) => this.#client.get(party.path, { ...call, watch: true }));
        if (own.stat.version > 0) break;
        await attempt.any([own.changed], { lost: party.lost });
      }
      const meeting = await this.#find(party, attempt);
      hasMet = meeting !== null;
      if (meeting !== null) return meeting;
    } catch (error) {
      // Our znode was deleted: with its session, or by another client.
      if (!(error instanceof NoNodeError)) throw asDoubtful(error, about);
    } finally {
      if (!hasMet) this.#leftovers.add(nameOf(party.path));
      void this.#leave(party);
    }
    throw this.#unknown(party);
  }

  /** Arrivals of cancelled calls or lost sessions may still exist: with them we would be counted twice. */
  async #clear(attempt: Attempt): Promise<void> {
    const marks = [...this.#leftovers];
    if (marks.length === 0) return;
    await attempt.prepare(async (call) => {
      const children = await this.#client.children(this.path, { ...call, read: 'linearizable' }).catch(ignoreMissing);
      const left = (children?.children ?? []).filter((name) => marks.some((mark) => name.startsWith(mark)));
      const paths = left.map((name) => joinPath(this.path, name));
      await Promise.all(paths.map((path) => this.#client.delete(path, call).catch(ignoreMissing)));
    });
    for (const mark of marks) this.#leftovers.delete(mark);
  }

  /**
   * Creates our arrival, once. It is not recreated when the session ends before it is known whether it was created: the
   * others may have met with it by then.
   */
  async #arrive(data: Uint8Array | null, attempt: Attempt): Promise<OwnedZnode> {
    const client = this.#client;
    const path = joinPath(this.path, ARRIVAL);
    for (;;) {
      const mark = makeMark('curator', client.surroundings.random);
      try {
        const options = { data, sequential: true, makeMark: () => mark };
        return await createOwned(client, path, options, attempt.next());
      } catch (error) {
        if (error instanceof NoNodeError) {
          await attempt.prepare((call) => client.ensurePath(this.path, { ...call, mode: 'container' }));
        } else if (attempt.passes(error) && error.outcome === 'not-applied') await attempt.reconnect();
        else {
          this.#leftovers.add(mark);
          throw error;
        }
      }
    }
  }

  #unknown({ path, lost }: OwnedZnode): ZooKeeperError {
    const about = { operation: 'Rendezvous.meet', path: this.path, outcome: 'unknown' } as const;
    if (lost.aborted) return new SessionLostError({ ...about, detail: 'it ended while we waited to meet the others' });
    const detail = `another client has deleted ${nameOf(path)}, which stood for us, or written to it`;
    return new NoNodeError({ ...about, detail });
  }

  /**
   * Lets complete groups meet.
   *
   * @throws RequestTooLargeError also when servers close the connection because of the size
   */
  async #convene(about: About): Promise<void> {
    const client = this.#client;
    const attempt = new Attempt(client, {}, about);
    const losses = new LossStreak();
    /** Arrivals that have been written to: they have met, or another client has written to them. */
    const written = new Set<string>();
    for (;;) {
      const { children } = await attempt.through((call) => client.children(this.path, call));
      const lastMet = children.filter(isRecord).sort(compareBySequence).at(-1);
      const waiting = children
        .filter((name) => isArrival(name) && (lastMet === undefined || compareBySequence(lastMet, name) < 0))
        .filter((name) => !written.has(name))
        .sort(compareBySequence)
        .slice(0, this.partyCount);
      if (waiting.length < this.partyCount) return;
      losses.check(about);
      let size = 0;
      try {
        const parties = await attempt.through((call) => Promise.all(waiting.map((name) => this.#read(name, call))));
        const others = parties.filter(({ version }) => version !== 0);
        for (const { name } of others) written.add(name);
        if (others.length > 0) continue;
        const transaction: Transaction<TransactionResult[]> = client.transaction();
        for (const name of waiting) transaction.set(joinPath(this.path, name), '', { version: 0 });
        const ends = [waiting[0]!, waiting.at(-1)!].map((name) => name.slice(withoutSequence(name).length));
        const record = writeMeeting(parties);
        size = record.length;
        transaction.create(joinPath(this.path, `${RECORD}${ends.join('-')}`), record);
        await transaction.commit();
      } catch (error) {
        losses.noted(error, size);
        // A party has left, another client was faster, or it was applied and the reply was lost: look again.
        if (error instanceof NoNodeError) continue;
        if (isPassing(error)) {
          await attempt.reconnect();
          continue;
        }
        if (!(error instanceof TransactionError)) throw error;
        if (!isRace(error)) throw error.cause;
      }
    }
  }

  async #read(name: string, call: CallOptions): Promise<Arrival & { readonly version: number }> {
    const { data, stat } = await this.#client.get(joinPath(this.path, name), { ...call, codec: nullableBytes });
    return { name, data, version: stat.version };
  }

  /** The meeting that a party was in; null when it was in none. */
  async #find(party: OwnedZnode, attempt: Attempt): Promise<Meeting<T> | null> {
    const client = this.#client;
    const own = nameOf(party.path);
    const { children } = await attempt.through((call) => client.children(this.path, { ...call, read: 'linearizable' }));
    const records = children.filter(isRecord).filter((name) => isWithin(name, sequenceOf(own)!));
    for (const name of records) {
      const path = joinPath(this.path, name);
      const { data, stat } = await attempt.through((call) => client.get(path, call));
      const arrivals = readMeeting(data);
      const index = arrivals.findIndex((arrival) => arrival.name === own);
      if (index < 0) continue;
      const values = await Promise.all(arrivals.map((arrival) => this.#decode(arrival)));
      return { values, index, round: stat.czxid };
    }
    return null;
  }

  async #decode({ name, data }: Arrival): Promise<T> {
    try {
      return await this.#codec.decode(data);
    } catch (cause) {
      throw new DecodeError('Rendezvous.meet', joinPath(this.path, name), data, cause);
    }
  }

  /** Deletes our arrival, and records that no party needs any longer. Never rejects. */
  async #leave(party: OwnedZnode): Promise<void> {
    const client = this.#client;
    const attempt = new Attempt(client, {}, { operation: 'Rendezvous.meet', path: this.path });
    try {
      await removeZnode(client, party.path, party.stat.ephemeralOwner);
      const { children } = await attempt.through((call) => client.children(this.path, call));
      const present = children.filter(isArrival).map((name) => sequenceOf(name)!);
      for (const record of children.filter(isRecord)) {
        if (present.some((sequence) => isWithin(record, sequence))) continue;
        await attempt.through((call) => client.delete(joinPath(this.path, record), call)).catch(() => {});
      }
    } catch {
      // The client is closed, or the path is gone; the next party that leaves cleans up.
    }
  }
}

function isArrival(name: string): boolean {
  return sequenceOf(name) !== null && withoutSequence(name).endsWith(ARRIVAL);
}

/** A record has the sequence number of its last party, so that it sorts among the arrivals. */
function isRecord(name: string): boolean {
  return name.startsWith(RECORD) && sequenceOf(name) !== null;
}

/** Whether the party with this number may have taken part. */
function isWithin(record: string, sequence: number): boolean {
  const first = sequenceOf(withoutSequence(record).slice(0, -1));
  const last = sequenceOf(record);
  if (first === null || last === null) return false;
  return compareSequences(first, sequence) <= 0 && compareSequences(sequence, last) <= 0;
}

const ARRIVAL = 'arrival-';
const RECORD = 'meeting-';
