import { type Client, ZooKeeperError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { Fleet } from '../testing/fleet.ts';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { DoubleBarrier } from './double-barrier.ts';
import type { Inside } from './inside.ts';

const MEMBERS = 3;
const FAULT_MS = 12_000;

/** Where a process stands, as it knows itself. */
type Place =
  | { readonly at: 'outside' }
  | { readonly at: 'entering' }
  | { readonly at: 'inside'; readonly inside: Inside }
  | { readonly at: 'leaving'; readonly inside: Inside };

/** Knows of all processes at once, and compares. */
class Judge {
  readonly places: Place[] = Array.from({ length: MEMBERS }, () => ({ at: 'outside' }));
  readonly roundsDone: number[] = Array.from({ length: MEMBERS }, () => 0);
  readonly #seen = new Set<bigint>();

  onEntered(process: number, inside: Inside): void {
    const { round } = inside;
    this.places[process] = { at: 'inside', inside };
    if (this.#seen.has(round)) return;
    this.#seen.add(round);
    // The first who learns of a round: nobody of the others can have come out of it, so all of them must be in it or
    // on the way.
    for (const [other, place] of this.places.entries()) {
      const isThere = place.at === 'entering' || (place.at === 'inside' && place.inside.round === round);
      if (!isThere) throw new Error(`process ${process} entered round ${round}, and ${other} is ${place.at}`);
    }
  }

  onLeft(process: number, round: bigint): void {
    for (const [other, place] of this.places.entries()) {
      if (other === process || place.at !== 'inside' || place.inside.round !== round) continue;
      if (place.inside.isHeld) throw new Error(`process ${process} left round ${round}, and ${other} is inside`);
    }
    this.places[process] = { at: 'outside' };
    this.roundsDone[process]!++;
  }
}

test.each(seeds(4))(
  'nobody enters or leaves alone, whatever goes wrong (seed %i)',
  async (seed) => {
    const fleet = new Fleet(seed);
    const judge = new Judge();
    await fleet.run(async () => {
      const clients = await fleet.connectAll(MEMBERS);
      if (seed % 4 === 0) fleet.unleashBreaks(FAULT_MS);
      else fleet.unleash(FAULT_MS, MEMBERS);
      const controller = new AbortController();
      const processes = clients.map((client, i) => live(fleet, client, i, judge, controller.signal));
      const ended = Promise.all(processes);
      await Promise.race([fleet.world.sleep(FAULT_MS + 2000), ended]);
      fleet.heal();
      const before = [...judge.roundsDone];
      const all = (): boolean => judge.roundsDone.every((done, i) => done >= before[i]! + 2);
      await Promise.race([fleet.world.until(all, 600_000), ended]);
      expect(judge.roundsDone, 'rounds after the faults').toSatisfy(all);
      controller.abort();
      await ended;
    });
  },
  patienceMs(1),
);

async function live(fleet: Fleet, client: Client, process: number, judge: Judge, signal: AbortSignal): Promise<void> {
  const layout = fleet.world.random.chance(0.5) ? 'kazoo' : 'curator';
  const { random } = fleet.world;
  while (!signal.aborted) {
    try {
      judge.places[process] = { at: 'entering' };
      const inside = await new DoubleBarrier(client, '/barrier', MEMBERS, { layout }).enter({ signal });
      judge.onEntered(process, inside);
      await fleet.world.sleep(random.between(0, 800));
      judge.places[process] = { at: 'leaving', inside };
      await inside.leave({ signal });
      judge.onLeft(process, inside.round);
      if (random.chance(0.5)) await fleet.world.sleep(random.between(0, 2500));
    } catch (error) {
      if (!(error instanceof ZooKeeperError) || error.code !== 'ABORTED') throw error;
    }
  }
}
