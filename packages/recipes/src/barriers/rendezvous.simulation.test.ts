import { type Client, text, ZooKeeperError } from '@meerkat/client';
import { expect } from 'vitest';
import type { Fleet } from '../testing/fleet.ts';
import { simulate } from '../testing/simulate.ts';
import { type Meeting, Rendezvous } from './rendezvous.ts';

const PARTIES = 3;
const FAULT_MS = 12_000;

/** Everything that the parties have seen. */
class Minutes {
  readonly meetings: number[] = Array.from({ length: PARTIES + 1 }, () => 0);
  readonly #values = new Map<bigint, string>();
  readonly #roundOf = new Map<string, bigint>();

  onMet(party: number, value: string, { values, index, round }: Meeting<string>): void {
    this.meetings[party]!++;
    expect(values).toHaveLength(PARTIES);
    expect(values[index]).toBe(value);
    const minutes = values.join(' ');
    expect(this.#values.get(round) ?? minutes, `the values of round ${round}`).toBe(minutes);
    this.#values.set(round, minutes);
    for (const each of values) {
      expect(this.#roundOf.get(each) ?? round, `the round of ${each}`).toBe(round);
      this.#roundOf.set(each, round);
    }
  }
}

simulate('all parties of a meeting see the same values, and each is in one meeting', 3, async (fleet, seed) => {
  const minutes = new Minutes();
  // One more than a round needs.
  const clients = await fleet.connectAll(PARTIES + 1);
  if (seed % 4 === 0) fleet.unleashBreaks(FAULT_MS);
  else fleet.unleash(FAULT_MS, clients.length);
  const controller = new AbortController();
  const ended = Promise.all(clients.map((client, i) => live(fleet, client, i, minutes, controller.signal)));
  await Promise.race([fleet.world.sleep(FAULT_MS + 2000), ended]);
  fleet.heal();
  const before = [...minutes.meetings];
  const all = (): boolean => minutes.meetings.every((count, i) => count >= before[i]! + 2);
  await Promise.race([fleet.world.until(all, 600_000), ended]);
  expect(minutes.meetings, 'meetings after the faults').toSatisfy(all);
  controller.abort();
  await ended;
  await fleet.world.sleep(20_000);
  expect((await clients[0]!.children('/meeting', { read: 'linearizable' })).children).toEqual([]);
});

async function live(fleet: Fleet, client: Client, party: number, minutes: Minutes, signal: AbortSignal): Promise<void> {
  const rendezvous = new Rendezvous(client, '/meeting', PARTIES, { codec: text });
  for (let i = 0; !signal.aborted; i++) {
    const value = `${party}/${i}`;
    // Sometimes a client cancels.
    const timeoutMs = fleet.world.random.chance(0.2) ? fleet.world.random.between(0, 500) : undefined;
    try {
      minutes.onMet(party, value, await rendezvous.meet(value, { signal, timeoutMs }));
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
    }
    await fleet.world.sleep(fleet.world.random.between(20, 400));
  }
}
