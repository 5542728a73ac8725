import { type Client, ConnectionLossError } from '@meerkat/client';
import { epochOf, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { play, type Stage } from './stage.ts';
import { expectSameTrees } from './tree-of.ts';

const TICK_MS = 100;

/** A client that writes all the time, several requests at once, to a znode of its own. */
class Writer {
  readonly name: string;
  readonly #client: Client;
  readonly #running: Promise<void>[] = [];
  #isOver = false;
  /** Versions that were acknowledged, and the number of writes whose outcome is unknown. */
  readonly acknowledged: number[] = [];
  inDoubt: number = 0;
  /** States of the client so far. */
  readonly states: string[] = [];
  readonly sessionId: bigint | undefined;

  constructor(name: string, client: Client, stage: Stage) {
    this.name = name;
    this.#client = client;
    this.sessionId = client.session?.id;
    client.onState(({ state }) => this.states.push(state));
    for (let i = 0; i < 3; i++) this.#running.push(this.#write(stage));
  }

  static async begin(stage: Stage, name: string): Promise<Writer> {
    const client = await stage.connect(name, { sessionTimeoutMs: 1000, attemptTimeoutMs: 200 });
    await client.create(`/${name}`);
    await client.create(`/${name}/alive`, '', { mode: 'ephemeral' });
    return new Writer(name, client, stage);
  }

  /** Stops writing, and checks that everything acknowledged is there, and the session too. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
    await this.#client.whenConnected();
    expect([this.name, this.#client.session?.id]).toEqual([this.name, this.sessionId]);
    expect(this.states).not.toContain('lost');
    expect(new Set(this.acknowledged).size).toBe(this.acknowledged.length);
    const { stat } = await this.#client.get(`/${this.name}`, { read: 'linearizable' });
    expect(stat.version).toBeGreaterThanOrEqual(Math.max(...this.acknowledged));
    expect(stat.version).toBeLessThanOrEqual(this.acknowledged.length + this.inDoubt);
    expect(await this.#client.exists(`/${this.name}/alive`)).not.toBeNull();
    await this.#client.close();
  }

  async #write(stage: Stage): Promise<void> {
    while (!this.#isOver) {
      try {
        const { version } = await this.#client.set(`/${this.name}`, 'data');
        this.acknowledged.push(version);
      } catch (error) {
        if (!(error instanceof ConnectionLossError)) throw error;
        if (error.outcome === 'unknown') this.inDoubt++;
      }
      await stage.sleep(2);
    }
  }
}

describe('a leader that is asked to stop', () => {
  test('hands over: another one leads within moments, no session is lost, and nothing that was acknowledged', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const old = await stage.start();
      const writers = await Promise.all(['a', 'b', 'c'].map((name) => Writer.begin(stage, name)));
      await stage.sleep(50);
      const stoppedMs = stage.world.nowMs;
      old.stop();
      const next = await stage.leader(...stage.servers.filter((server) => server !== old));
      // No server has waited for a timeout.
      expect(stage.world.nowMs - stoppedMs).toBeLessThan(2 * TICK_MS);
      expect(next.epoch).toBe(epochOf(stage.found(next).txns.at(-1)!.zxid as Zxid) + 1);
      await stage.until('the process has ended', () => !old.isRunning);
      expect(old.failure).toBeNull();
      await stage.sleep(200);
      old.start();
      await stage.whole(old);
      for (const writer of writers) await writer.end();
      await expectSameTrees(stage);
    }));

  test('leaves behind servers that keep their trees in the next role, and read nothing again', () =>
    play({ servers: 3 }, async (stage) => {
      const old = await stage.start();
      await stage.write(old, 50);
      await stage.whole();
      const replayed: number[] = [];
      stage.world.watch({
        onTrace: (_server, event) => void (event.kind === 'recovered' && replayed.push(event.txns)),
      });
      old.stop();
      const next = await stage.leader(...stage.servers.filter((server) => server !== old));
      // They may include a txn that was logged and not applied yet.
      for (const txns of replayed) expect(txns).toBeLessThan(5);
      expect(replayed).toHaveLength(2);
      expect(stage.found(next).txns.length).toBeGreaterThan(50);
    }));

  test('commits what it has proposed before it stops', () =>
    play({ servers: 3 }, async (stage) => {
      const old = await stage.start();
      const client = await stage.at(old);
      const answers = Array.from({ length: 30 }, (_, i) => client.create(`/x${i}`));
      const outcomes = Promise.allSettled(answers);
      await stage.until('some are proposed', () => (old.core?.view.outstandingRequests ?? 0) > 5);
      old.stop();
      const next = await stage.leader(...stage.servers.filter((server) => server !== old));
      const statuses = (await outcomes).map(({ status }) => status);
      for (const [i, status] of statuses.entries()) {
        if (status === 'fulfilled') expect([i, await stage.has(next, `/x${i}`)]).toEqual([i, true]);
      }
      expect(statuses.filter((status) => status === 'fulfilled').length).toBeGreaterThan(5);
    }));

  test('one after the other, all servers can be restarted under load, and no client loses its session', () =>
    play({ servers: 3, seeds: [1, 2] }, async (stage) => {
      await stage.start();
      const writers = await Promise.all(['a', 'b'].map((name) => Writer.begin(stage, name)));
      // The leader each time: otherwise the last server to be restarted would lead.
      for (let round = 0; round < 3; round++) {
        const leader = await stage.leader();
        leader.stop();
        await stage.until('it has stopped', () => !leader.isRunning);
        leader.start();
        await stage.until('all serve', () => stage.servers.every(({ isServing }) => isServing));
      }
      for (const writer of writers) await writer.end();
      await expectSameTrees(stage);
    }));

  test('stops without a successor when no other server can lead, and leaves everything for the next start', () =>
    play({ servers: 3 }, async (stage) => {
      const old = await stage.start();
      const [first, second] = stage.servers.filter((server) => server !== old);
      await stage.write(old, 3);
      stage.kill(first!, second!);
      old.stop();
      await stage.until('it has stopped', () => !old.isRunning, 5000);
      expect(old.failure).toBeNull();
    }));
});

describe('an epoch', () => {
  test('that has used up its zxids is followed by the next one, and no client loses its session', () =>
    play({ servers: 3, observers: 1, ensemble: { epochTxnsMax: 60 } }, async (stage) => {
      const leader = await stage.start();
      const first = leader.epoch;
      const writers = await Promise.all(['a', 'b', 'c'].map((name) => Writer.begin(stage, name)));
      await stage.until('some epochs have passed', () => (stage.ensemble.leader?.epoch ?? 0) >= first + 4);
      for (const writer of writers) await writer.end();
      const counters = stage.logOf(leader).map(({ header }) => header.zxid % 2 ** 32);
      expect(Math.max(...counters)).toBeLessThanOrEqual(60 + 40);
      await expectSameTrees(stage);
    }));

  test('that is at its end accepts no requests to end sessions: the leader proposes nothing more', () =>
    play({ servers: 3, ensemble: { epochTxnsMax: 60 } }, async (stage) => {
      const leader = await stage.start();
      expect(leader.core?.endsSessions).toBe(true);
      const writer = await Writer.begin(stage, 'a');
      await stage.until('it hands over', () => leader.isServing && leader.core?.endsSessions === false);
      await stage.until('the next one leads', () => stage.ensemble.leader?.core?.endsSessions === true);
      await writer.end();
    }));
});
