/**
 * Observers of an election under faults. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/election/observe-leader.simulation.test.ts`.
 */
import { ZooKeeperError } from '@meerkat/client';
import { expect } from 'vitest';
import { LineHistory } from '../testing/line-history.ts';
import { drawLimits, runStorm, simulateStorm, type Worker } from '../testing/storm.ts';
import { Election, type ElectionOptions } from './election.ts';

const SHAPES: readonly ElectionOptions[] = [{ style: 'latch' }, { style: 'selector' }, { layout: 'kazoo' }];
const CANDIDATES = ['one', 'two', 'three'];
const OBSERVERS = ['ann', 'bob', 'eve'];

/** A leader reported to an observer. */
interface Observation {
  /** null: no leader. */
  readonly token: bigint | null;
  readonly id: string | null;
  /** The last zxid committed when it was reported. */
  readonly untilZxid: number;
}

simulateStorm(
  'an observer sees leaders in order, each of which has led, and sees the final leader',
  4,
  async (fleet, seed) => {
    const shape = SHAPES[seed % SHAPES.length]!;
    const leaders = new Map<bigint, string>();
    const seen = new Map<string, Observation[]>(OBSERVERS.map((host) => [host, []]));
    const following: Promise<void>[] = [];
    const end = new AbortController();

    const follow = async ({ station, client }: Worker): Promise<void> => {
      for await (const leader of new Election(client, '/leader', shape).observe({ signal: end.signal })) {
        seen
          .get(station.host)!
          .push({ token: leader?.token ?? null, id: leader?.id ?? null, untilZxid: fleet.committedZxid });
        expect(leader?.isLeader ?? true).toBe(true);
      }
    };
    const lead = async ({ station, client, random }: Worker): Promise<void> => {
      const election = new Election(client, '/leader', { ...shape, id: station.host });
      await using leadership = await election.campaign(drawLimits(random));
      leaders.set(leadership.token, station.host);
      // Sometimes for longer than an observer's session lives; the same leader must not be reported twice.
      await station.sleep(random.between(1, random.chance(0.2) ? 15_000 : 1500));
    };
    const work = async (worker: Worker): Promise<void> => {
      const { station, random, isOver } = worker;
      if (OBSERVERS.includes(station.host)) {
        following.push(follow(worker));
        return;
      }
      while (!isOver()) {
        try {
          await lead(worker);
        } catch (error) {
          if (!(error instanceof ZooKeeperError)) throw error;
        }
        // Sometimes there is no candidate.
        await station.sleep(random.between(1, random.chance(0.5) ? 200 : 4000));
      }
    };
    const hosts = [...CANDIDATES, ...OBSERVERS];
    await runStorm(
      fleet,
      { hosts },
      work,
      () => {},
      async (client) => {
        const lastOf = (host: string): bigint | null | undefined => seen.get(host)!.at(-1)?.token;
        const whenAllNotified = async (token: bigint | null): Promise<void> => {
          await fleet.world.until(() => OBSERVERS.every((host) => lastOf(host) === token), 30_000);
          for (const host of OBSERVERS) expect(lastOf(host), `the last leader that ${host} saw`).toBe(token);
        };
        await whenAllNotified(null);
        const last = await new Election(client, '/leader', { ...shape, id: 'judge' }).campaign();
        leaders.set(last.token, 'judge');
        await whenAllNotified(last.token);
        await last.release();
        await whenAllNotified(null);
        end.abort();
        await Promise.all(following);
        const tree = await fleet.committedTree();
        for (const [host, observations] of seen)
          check(host, observations, leaders, tree === null ? null : new LineHistory(tree, '/leader'));
      },
    );
    expect(leaders.size).toBeGreaterThan(1);
  },
);

function check(
  host: string,
  observations: readonly Observation[],
  leaders: ReadonlyMap<bigint, string>,
  line: LineHistory | null,
): void {
  let last = 0n;
  /** The index of the latest first znode that it can have seen. */
  let at = -1;
  for (const { token, id, untilZxid } of observations) {
    if (token !== null) {
      expect(token, `${host} sees leaders in order`).toBeGreaterThan(last);
      expect(leaders.get(token) ?? id, `the leader with token ${token}`).toBe(id);
      last = token;
    }
    if (line === null) continue;
    at = line.firsts.findIndex((first, i) => i > at && first.token === token);
    expect(at, `${token} was first after what ${host} had seen`).toBeGreaterThanOrEqual(0);
    expect(line.firsts[at]!.fromZxid, `${token} was first when ${host} was notified`).toBeLessThanOrEqual(untilZxid);
  }
}
