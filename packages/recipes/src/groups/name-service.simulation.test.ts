/**
 * Processes bind and claim names and count numbers under faults of servers and links, while processes die, cancel and
 * come back. In every seed, checked against the committed history:
 *
 * 1. a bind or rebind that succeeded was written once, one of unknown outcome at most once, and one reported as
 *    'not-applied' never; an unbound name was freed by that call and during it, and no call frees a name twice;
 * 2. a name that is looked up was bound, at the reported zxid;
 * 3. no name and no number is allocated twice, and each was counted for the client that has it, once per call;
 * 4. a held claim exists, a released one does not, and a failed one leaves nothing in a session that continues;
 * 5. once all faults are healed, every process can bind, free, claim and count.
 */
import {
  type CallOptions,
  type Client,
  type ExpectedVersionOptions,
  isZooKeeperError,
  type Outcome,
  parentOf,
  ZooKeeperError,
} from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import { sequenceOf } from '../kernel/sequence.ts';
import type { Fleet } from '../testing/fleet.ts';
import { Ledger } from '../testing/ledger.ts';
import { simulate } from '../testing/simulate.ts';
import { type Binding, type ClaimedName, NameService } from './name-service.ts';

const HOSTS = ['one', 'two', 'three'];
const BOUND = ['db/x', 'db/y'];
const STORM_MS = 20_000;

simulate('names and numbers are allocated once', 4, liveThrough);

/** A process that lives until the end. */
interface Survivor {
  readonly client: Client;
  /** Runs one call of each kind, without a limit. */
  readonly actInCalm: () => Promise<void>;
}

/** Calls of a process whose txns do not show which call they belong to. */
interface CallCounts {
  readonly sessionIds: Set<bigint>;
  readonly unbound: { readonly path: string; readonly sinceZxid: number; readonly untilZxid: number }[];
  /** The number of calls by outcome. */
  readonly ends: { readonly [kind in 'unbind' | 'nextId']: { [end in 'done' | Outcome]: number } };
}

class Notes {
  readonly ledger = new Ledger<string>();
  readonly claimed = new Ledger<string>();
  readonly counts: CallCounts[] = [];
  readonly found: Binding[] = [];
  /** Allocated names and numbers. */
  readonly given: string[] = [];
  readonly stands: { readonly path: string; readonly zxid: number; readonly token: bigint | null }[] = [];
}

async function liveThrough(fleet: Fleet): Promise<void> {
  const random = fleet.world.random.fork('program');
  const notes = new Notes();
  let isOver = false;
  let written = 0;

  /** Claims that were neither released nor lost, of all processes. */
  const claims = new Set<ClaimedName>();
  const look = (client: Client, claimed: ClaimedName): void => {
    const { clock } = client.surroundings;
    if (!claimed.isHeld || client.lostAtMs < clock.monotonicMs()) return;
    notes.stands.push({ path: claimed.path, zxid: fleet.committedZxid, token: claimed.token });
  };
  const release = async (client: Client, claimed: ClaimedName): Promise<void> => {
    let wasConnected = client.state === 'connected';
    const states = client.onState(() => {
      wasConnected = false;
    });
    await claimed.release();
    claims.delete(claimed);
    states[Symbol.dispose]();
    expect(claimed.isHeld).toBe(false);
    if (wasConnected) notes.stands.push({ path: claimed.path, zxid: fleet.committedZxid, token: null });
  };
  const live = async (host: string): Promise<Survivor> => {
    for (;;) {
      const client = await fleet.connectAs(host);
      const names = new NameService(client, '/names');
      const counts = makeCounts();
      notes.counts.push(counts);
      const noteSession = (): void => void (client.session !== null && counts.sessionIds.add(client.session.id));
      noteSession();
      client.onState(noteSession);
      /** Records how a call ends. */
      const count = async <T>(kind: keyof CallCounts['ends'], run: Promise<T>): Promise<T> => {
        let end: 'done' | Outcome = 'done';
        try {
          return await run;
        } catch (error) {
          if (!isZooKeeperError(error)) throw error;
          end = error.outcome;
          throw error;
        } finally {
          counts.ends[kind][end]++;
        }
      };
      const unbind = async (name: string, options: ExpectedVersionOptions): Promise<void> => {
        const sinceZxid = fleet.committedZxid;
        await count('unbind', names.unbind(name, options));
        counts.unbound.push({ path: `/names/${name}`, sinceZxid, untilZxid: fleet.committedZxid });
      };
      const claim = async (address: string, options: CallOptions = {}): Promise<ClaimedName | null> => {
        const claimed = await notes.claimed.note(address, names.claim('workers/w-', address, options));
        if (claimed instanceof ZooKeeperError) return null;
        claims.add(claimed);
        given(claimed.name);
        return claimed;
      };
      const act = async (options: CallOptions): Promise<void> => {
        const name = random.pick(BOUND);
        const address = `${host} ${++written}`;
        const kind = random.between(0, 5);
        if (kind === 0) await notes.ledger.note(address, names.bind(name, address, options));
        else if (kind === 1) given(`id ${await count('nextId', names.nextId('ids', options))}`);
        else if (kind <= 3) {
          const claimed = await claim(address, options);
          if (claimed === null) return;
          if (client.state === 'connected' && !client.lostSignal.aborted) await expectAlive(client, claimed);
          look(client, claimed);
          await fleet.world.sleep(random.between(0, 500));
          look(client, claimed);
          if (random.chance(0.8)) await release(client, claimed);
        } else {
          const found = await names.lookUp(name, options);
          if (found === null) return;
          notes.found.push(found);
          const { version } = found.stat;
          if (kind === 4) await notes.ledger.note(address, names.rebind(name, address, { ...options, version }));
          else await unbind(name, { ...options, version });
        }
      };
      const given = (what: string): void => void notes.given.push(what);
      const actInCalm = async (): Promise<void> => {
        const name = `db/${host}`;
        const bound = await notes.ledger.note(name, names.bind(name, name));
        if (bound instanceof ZooKeeperError) throw bound;
        const { version } = bound;
        await unbind(name, { version });
        given(`id ${await count('nextId', names.nextId())}`);
        expect(await claim(`${host} in calm`)).not.toBeNull();
      };
      const endMs = fleet.world.nowMs + random.between(1000, 10_000);
      while (!isOver && fleet.world.nowMs < endMs) {
        await act(random.chance(0.5) ? { timeoutMs: random.between(0, 300) } : {}).catch((error: unknown) => {
          if (!isZooKeeperError(error)) throw error;
        });
        await fleet.world.sleep(random.between(0, 100));
      }
      if (isOver) return { client, actInCalm };
      if (random.chance(0.5)) await fleet.kill(client);
      else await client.close();
      await fleet.world.sleep(random.between(0, 1000));
    }
  };
  const living = HOSTS.map(live);
  await fleet.storm(HOSTS, STORM_MS);
  await fleet.recover();
  isOver = true;
  const survivors = await Promise.all(living);
  const clients = survivors.map(({ client }) => client);

  // Longer than any session: what exists now belongs to live sessions.
  await Promise.all(clients.map((client) => client.whenConnected()));
  await fleet.world.sleep(20_000);
  // An abandoned handshake may have moved a session to another server; the session finds out with its next write,
  // because that connection is closed.
  const settle = async (client: Client): Promise<void> => {
    await client.set('/names', '').catch(() => {});
    await client.whenConnected();
  };
  await Promise.all(clients.map(settle));
  await Promise.all(survivors.map(({ actInCalm }) => actInCalm()));
  await fleet.world.sleep(1000);
  const sessions = new Set(clients.map((client) => client.session?.id));
  const tree = await fleet.committedTree();
  if (tree !== null) check(tree, notes, sessions, claims);
  for (const client of clients) await client.close();
  expect(new Set(notes.given).size, 'allocated names and numbers').toBe(notes.given.length);
}

/** A claim must not end as soon as it is created. */
async function expectAlive(client: Client, claimed: ClaimedName): Promise<void> {
  const stat = await client.exists(claimed.path, { read: 'linearizable' }).catch(() => null);
  if (stat === null || client.session?.id !== stat.ephemeralOwner || client.lostSignal.aborted) return;
  expect(claimed.signal.aborted, `${claimed.name} is ours, but its signal has aborted`).toBe(false);
}

function check(
  tree: CommittedTree,
  { ledger, claimed, counts, found, stands }: Notes,
  sessions: ReadonlySet<bigint | undefined>,
  claims: ReadonlySet<ClaimedName>,
): void {
  const decoder = new TextDecoder();
  const dataAt = (path: string, zxid: number): string => decoder.decode(tree.stateAt(path, zxid)?.data ?? undefined);
  const paths = [...BOUND, ...HOSTS.map((host) => `db/${host}`)].map((name) => `/names/${name}`);
  const writes = paths.flatMap((path) =>
    tree
      .changesOf(path)
      .filter(({ type }) => type === 'created' || type === 'changed')
      .map(({ zxid }) => dataAt(path, zxid)),
  );
  ledger.check(writes);
  for (const { address, stat } of found) {
    expect(paths.map((path) => dataAt(path, Number(stat.mzxid)))).toContain(address);
  }
  const made = (parent: string) =>
    tree.changes.filter(({ type, path }) => type === 'created' && parentOf(path) === parent);
  claimed.check(made('/names/workers').map(({ path, zxid }) => dataAt(path, zxid)));
  const deleted = paths.flatMap((path) => tree.changesOf(path)).filter(({ type }) => type === 'deleted');
  for (const { sessionIds, unbound, ends } of counts) {
    const ownOf = (changes: CommittedTree['changes']): number =>
      changes.filter(({ zxid }) => sessionIds.has(tree.entryAt(zxid)!.header.sessionId)).length;
    const { nextId, unbind } = ends;
    const counted = ownOf(made('/names/ids'));
    expect(counted, 'numbers that were counted').toBeGreaterThanOrEqual(nextId.done);
    expect(counted, 'numbers that were counted').toBeLessThanOrEqual(nextId.done + nextId.unknown);
    const freed = ownOf(deleted);
    expect(freed, 'names that were freed').toBeGreaterThanOrEqual(unbind.done);
    expect(freed, 'names that were freed').toBeLessThanOrEqual(unbind.done + unbind.unknown);
    for (const { path, sinceZxid, untilZxid } of unbound) {
      const isFreed = deleted.some(
        ({ path: freedPath, zxid }) =>
          freedPath === path &&
          zxid > sinceZxid &&
          zxid <= untilZxid &&
          sessionIds.has(tree.entryAt(zxid)!.header.sessionId),
      );
      expect(isFreed, `${path} is unbound between ${sinceZxid} and ${untilZxid}`).toBe(true);
    }
  }
  for (const { path, zxid, token } of stands) {
    const state = tree.stateAt(path, zxid);
    expect(state === null ? null : BigInt(state.czxid), `${path} at ${zxid}`).toBe(token);
  }
  const held = new Set([...claims].map(({ path }) => path));
  for (const path of tree.paths()) {
    if (sequenceOf(path) === null || !path.startsWith('/names/')) continue;
    const state = tree.stateAt(path, tree.lastZxid);
    if (state === null) continue;
    expect(sessions.has(state.owner), `${path} stays although its session is over`).toBe(true);
    expect(held.has(path), `${path} stays although it is free`).toBe(true);
  }
}

function makeCounts(): CallCounts {
  const none = () => ({ done: 0, unknown: 0, 'not-applied': 0 });
  return { sessionIds: new Set(), unbound: [], ends: { unbind: none(), nextId: none() } };
}
