import { type Client, ConnectionLossError, NotReadOnlyError, text, type ZooKeeperError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { doubtClient } from '../testing/doubted-client.ts';
import { withClients } from '../testing/fleet.ts';
import { watched } from '../testing/watched.ts';
import { CyclicBarrier } from './cyclic-barrier.ts';
import { readMeeting, writeMeeting } from './meeting-record.ts';
import { Rendezvous } from './rendezvous.ts';

function makeGate(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((onResolve) => {
    resolve = onResolve;
  });
  return { promise, resolve };
}

describe('a rendezvous', () => {
  test(
    'gives each party the values of all, in order of arrival',
    withClients(async (fleet, ...clients) => {
      for (let round = 0; round < 3; round++) {
        const meetings = await Promise.all(
          clients.map(async (client, i) => {
            await fleet.world.sleep(100 * i);
            return new Rendezvous(client, '/meeting', 3, { codec: text }).meet(`${round} ${i}`);
          }),
        );
        expect(meetings.map(({ values }) => values)).toEqual(Array(3).fill([0, 1, 2].map((i) => `${round} ${i}`)));
        expect(meetings.map(({ index }) => index)).toEqual([0, 1, 2]);
        expect(new Set(meetings.map(({ round: zxid }) => zxid)).size).toBe(1);
        await fleet.world.sleep(1000);
        expect((await clients[0]!.children('/meeting')).children).toEqual([]);
      }
    }, 3),
  );

  test(
    'does not count cancelled parties, and supports several rounds',
    withClients(async (fleet, ...clients) => {
      const meet = (i: number, value: string, timeoutMs?: number) =>
        new Rendezvous(clients[i]!, '/meeting', 2, { codec: text }).meet(value, { timeoutMs });
      await expect(meet(0, 'gone', 100)).rejects.toMatchObject({ code: 'TIMEOUT' });
      await fleet.world.sleep(100);
      const meetings = await Promise.all([0, 1, 2, 0, 1, 2].map((i, k) => meet(i, `${k}`)));
      const groups = meetings.map(({ values }) => values.join());
      for (const [k, { values, index }] of meetings.entries()) {
        expect(values).toHaveLength(2);
        expect(values[index]).toBe(`${k}`);
      }
      expect(new Set(groups).size).toBe(3);
    }, 3),
  );

  test(
    'keeps its second arrival when the first is in doubt, however late the first is removed',
    withClients(async (fleet, first, second) => {
      const { client, relent } = doubtClient(first, '/meeting');
      const meeting = new Rendezvous(client, '/meeting', 2, { codec: text }).meet('1');
      await fleet.world.sleep(1000);
      relent();
      // Longer than any pause of the removal.
      await fleet.world.sleep(5000);
      await new Rendezvous(second, '/meeting', 2, { codec: text }).meet('2', { timeoutMs: 5000 });
      expect((await meeting).values).toEqual(['1', '2']);
    }, 3),
  );

  test(
    'reports an unknown outcome when it is cancelled after its arrival',
    withClients(async (fleet, client) => {
      await client.ensurePath('/meeting');
      const outcomes = new Set<string>();
      for (let timeoutMs = 0; timeoutMs < 12; timeoutMs += 0.5) {
        const arrived = (await client.exists('/meeting'))!.cversion;
        const meeting = new Rendezvous(client, '/meeting', 1).meet(new Uint8Array(), { timeoutMs });
        const outcome = await meeting.then(
          () => 'met',
          (error: ZooKeeperError) => error.outcome,
        );
        outcomes.add(outcome);
        await fleet.world.sleep(1000);
        const hasArrived = (await client.exists('/meeting'))!.cversion > arrived;
        if (hasArrived) expect(outcome).not.toBe('not-applied');
      }
      expect(outcomes).toEqual(new Set(['not-applied', 'unknown', 'met']));
    }, 1),
  );

  test(
    'reports not-applied when it is cancelled before its arrival, whatever is in flight',
    withClients(async (fleet, client) => {
      const { network } = fleet.world;
      const rendezvous = new Rendezvous(client, '/meeting', 2);
      const meet = (): Promise<unknown> => rendezvous.meet(new Uint8Array(), { timeoutMs: 1000 });
      const ensurePath = client.ensurePath.bind(client);
      client.ensurePath = (...call) => {
        client.ensurePath = ensurePath;
        network.block('zk1', 'client1');
        return ensurePath(...call);
      };
      await expect(meet()).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      network.heal();
      await client.whenConnected();
      const { promise: delay, resolve: release } = makeGate();
      const remove = client.delete.bind(client);
      client.delete = async (path, options) => {
        client.delete = (...call) => {
          client.delete = remove;
          network.block('zk1', 'client1');
          return remove(...call);
        };
        await delay;
        return remove(path, options);
      };
      // The arrival that this one leaves behind delays the next call.
      await expect(meet()).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'unknown' });
      await expect(meet()).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      release();
    }, 1),
  );

  test(
    'does not report not-applied when the service refuses a request after its arrival',
    withClients(async (fleet, client, other) => {
      const meeting = new Rendezvous(other, '/meeting', 2, { codec: text }).meet('first');
      await fleet.world.sleep(1000);
      const begin = client.transaction.bind(client);
      client.transaction = () => {
        const made = begin();
        const commit = made.commit.bind(made);
        made.commit = async (options) => {
          made.commit = async () => {
            throw new NotReadOnlyError({ operation: 'transaction', path: null });
          };
          client.transaction = () => made;
          client.children = async (path: string) => {
            throw new NotReadOnlyError({ operation: 'children', path });
          };
          await commit(options);
          throw new ConnectionLossError({ operation: 'transaction', path: null, outcome: 'unknown' });
        };
        return made;
      };
      const refused = new Rendezvous(client, '/meeting', 2, { codec: text }).meet('second');
      await expect(refused).rejects.toMatchObject({ code: 'NOTREADONLY', outcome: 'unknown' });
      expect((await meeting).values).toEqual(['first', 'second']);
    }, 2),
  );

  test(
    'does not count a party twice that cancels and comes again while its first arrival still exists',
    withClients(async (fleet, client, other) => {
      const { promise: delay, resolve: release } = makeGate();
      const remove = client.delete.bind(client);
      client.delete = async (path, options) => {
        client.delete = remove;
        await delay;
        return remove(path, options);
      };
      const rendezvous = new Rendezvous(client, '/meeting', 2, { codec: text });
      await expect(rendezvous.meet('first', { timeoutMs: 1000 })).rejects.toMatchObject({ outcome: 'unknown' });
      const meeting = rendezvous.meet('second');
      await fleet.world.sleep(1000);
      expect((await other.children('/meeting')).children).toHaveLength(1);
      await new Rendezvous(other, '/meeting', 2, { codec: text }).meet('other');
      expect((await meeting).values).toEqual(['second', 'other']);
      release();
      await fleet.world.sleep(1000);
      expect((await other.children('/meeting')).children).toEqual([]);
    }, 2),
  );

  test(
    'fails for the last party when servers close connections because the record is too large, and stops retrying',
    withClients(async (fleet) => {
      const clients = await fleet.connectAll(3, { requestBytesMax: 8 * 1024 * 1024 });
      const value = new Uint8Array(500_000);
      const meet = (client: Client): Promise<unknown> => new Rendezvous(client, '/meeting', 3).meet(value);
      const waiting = clients.slice(1).map((client) => watched(meet(client)));
      await fleet.world.sleep(1000);
      await expect(meet(clients[0]!)).rejects.toMatchObject({ code: 'REQUESTTOOLARGE', outcome: 'unknown' });
      await fleet.world.sleep(1000);
      const states: string[] = [];
      for (const client of clients) client.onState(({ state }) => states.push(state));
      await fleet.world.sleep(20_000);
      expect(states).toEqual([]);
      expect(waiting.map(({ isSettled }) => isSettled)).toEqual([false, false]);
      expect((await clients[0]!.children('/meeting')).children).toHaveLength(2);
    }, 0),
  );

  test(
    'continues without an arrival that another client has written to',
    withClients(async (fleet, absent, client, other) => {
      const lost = new Rendezvous(absent, '/meeting', 2, { codec: text }).meet('absent');
      await fleet.world.sleep(1000);
      const { network } = fleet.world;
      network.block('client1', 'zk1');
      network.block('zk1', 'client1');
      const [name] = (await client.children('/meeting')).children;
      await client.set(`/meeting/${name}`, 'by hand');
      let lists = 0;
      const children = client.children.bind(client);
      client.children = ((...call: Parameters<typeof children>) => {
        lists++;
        return children(...call);
      }) as typeof children;
      const meeting = new Rendezvous(client, '/meeting', 2, { codec: text }).meet('one');
      await fleet.world.sleep(1000);
      // A session that was silent for a while lives on, and its arrival with it.
      expect((await other.children('/meeting')).children).toHaveLength(2);
      expect(lists).toBeLessThan(5);
      const { values } = await new Rendezvous(other, '/meeting', 2, { codec: text }).meet('two');
      expect(values).toEqual(['one', 'two']);
      await meeting;
      network.heal();
      await expect(lost).rejects.toMatchObject({ code: 'NONODE', outcome: 'unknown' });
    }, 3),
  );

  test(
    'reports that another client has deleted its arrival, not that its session is lost',
    withClients(async (fleet, client, other) => {
      const meeting = new Rendezvous(client, '/meeting', 2, { codec: text }).meet('gone');
      const ended = expect(meeting).rejects.toMatchObject({
        code: 'NONODE',
        outcome: 'unknown',
        message: expect.stringContaining('another client has deleted'),
      });
      await fleet.world.sleep(1000);
      await other.deleteRecursive('/meeting');
      await ended;
    }, 3),
  );

  test('writes its record in the documented format', () => {
    const record = Uint8Array.of(0, 0, 0, 2, 0, 0, 0, 1, 0x61, 0, 0, 0, 2, 7, 8, 0, 0, 0, 1, 0x62, 255, 255, 255, 255);
    const arrivals = [
      { name: 'a', data: Uint8Array.of(7, 8) },
      { name: 'b', data: null },
    ];
    expect(writeMeeting(arrivals)).toEqual(record);
    expect(readMeeting(record)).toEqual(arrivals);
    expect(() => readMeeting(record.subarray(0, 14))).toThrow(RangeError);
  });
});

describe('a cyclic barrier', () => {
  test(
    'opens for the required number of parties, round after round',
    withClients(async (_, ...clients) => {
      const seen: bigint[] = [];
      for (let round = 0; round < 4; round++) {
        const passages = await Promise.all(clients.map((client) => new CyclicBarrier(client, '/steps', 3).wait()));
        expect(passages.map(({ index }) => index).sort()).toEqual([0, 1, 2]);
        const rounds = new Set(passages.map((passage) => passage.round));
        expect(rounds.size).toBe(1);
        seen.push(...rounds);
      }
      expect(seen).toEqual(seen.toSorted((a, b) => (a < b ? -1 : 1)));
    }, 3),
  );
});
