import { createServer, type Server } from 'node:net';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import { afterEach, describe, expect, test } from 'vitest';
import { clientsLeft } from '../draining/clients-left.ts';
import { planMigration } from '../migration/migration-plan.ts';
import { readStates } from '../monitoring/server-state.ts';
import { type RolledServer, roll } from './roll.ts';

const NEVER = new AbortController().signal;
const TIMEOUT_MS = 20_000;

/** Answers every word with the same text. */
class FakeServer {
  readonly #server: Server;
  text: string;

  private constructor(text: string) {
    this.text = text;
    this.#server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(this.text));
    });
  }

  static async start(text: string): Promise<FakeServer> {
    const fake = new FakeServer(text);
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve));
    started.push(fake);
    return fake;
  }

  get target(): MonitoredServer {
    const { port } = this.#server.address() as { port: number };
    return { host: '127.0.0.1', port, name: `127.0.0.1:${port}`, tls: null };
  }

  stop(): void {
    this.#server.close();
  }
}

let started: FakeServer[] = [];
afterEach(() => {
  for (const fake of started) fake.stop();
  started = [];
});

function srvr(mode: string): string {
  return `Zookeeper version: 3.8.0-1, built on x\nLatency min/avg/max: 0/0.0/0\nReceived: 9\nSent: 9\nConnections: 1\nOutstanding: 0\nZxid: 0x100000009\nMode: ${mode}\nNode count: 5\n`;
}

const NOT_SERVING = 'This ZooKeeper instance is not currently serving requests\n';
const PROBE = { take: () => ({ pauseMs: 0, requests: 1, failures: 0 }) };

describe('a rolling change', () => {
  test('touches no second server when another one fails by itself meanwhile', async () => {
    const [leader, one, two] = await Promise.all([
      FakeServer.start(srvr('leader')),
      FakeServer.start(srvr('follower')),
      FakeServer.start(srvr('follower')),
    ]);
    const options = { command: 'true', withinMs: TIMEOUT_MS, timeoutMs: TIMEOUT_MS };
    const rolled: RolledServer[] = [];
    const rolling = (async () => {
      for await (const server of roll(
        [leader, one, two].map(({ target }) => target),
        PROBE,
        options,
        NEVER,
      )) {
        rolled.push(server);
        leader.text = NOT_SERVING;
      }
    })();
    await expect(rolling).rejects.toThrow(`${two.target.name} and the servers behind it were not touched`);
    expect(rolled.map(({ server }) => server)).toEqual([one.target.name]);
  });

  test('does not begin with what is no ZooKeeper', async () => {
    const web = await FakeServer.start('HTTP/1.1 400 Bad Request\r\n\r\n');
    const options = { command: 'false', withinMs: 1, timeoutMs: TIMEOUT_MS };
    const first = roll([web.target], PROBE, options, NEVER).next();
    await expect(first).rejects.toThrow(/nothing was done: .* is no ZooKeeper: it answers "HTTP/);
  });
});

test('a server that drains and does not answer is not one without clients', async () => {
  const looking = await FakeServer.start(NOT_SERVING);
  const [state] = await readStates([looking.target], TIMEOUT_MS, NEVER);
  expect(() => clientsLeft(state!)).toThrow(/how many clients are left is not known/);
});

test('a server that does not answer is of neither program', async () => {
  const looking = await FakeServer.start(NOT_SERVING);
  const states = await readStates([looking.target], TIMEOUT_MS, NEVER);
  expect(planMigration(states, 'apache').map(({ isDone }) => isDone)).toEqual([false]);
  expect(planMigration(states, 'meerkat').map(({ isDone }) => isDone)).toEqual([false]);
});
