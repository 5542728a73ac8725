import { type Client, connect, type Stall } from '@meerkat/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ServerProcess } from '../harness/server-process.ts';
import { QUICK } from './fault-site.ts';
import { outcomeOf } from './outcome.ts';
import { StateLog } from './state-log.ts';

const SESSION_TIMEOUT_MS = 900;

let server: ServerProcess;
let client: Client;
let states: StateLog;
let stalls: Stall[];
beforeAll(async () => {
  // In a separate process, which keeps running while this one is blocked.
  server = await ServerProcess.start('meerkat', { config: { tickTime: 100 } });
});
afterAll(() => server.dispose());
beforeEach(async () => {
  client = await connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: SESSION_TIMEOUT_MS, backOff: QUICK });
  states = new StateLog(client);
  stalls = [];
  client.onStall((stall) => stalls.push(stall));
});
afterEach(() => client.close());

/** Blocks the event loop, like a long computation. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

describe('a blocked event loop', () => {
  test('for a part of the session timeout is reported, and the session continues', async () => {
    const id = client.session?.id;
    // The timeout counts from the sending of this ping.
    await client.ping();
    const startMs = performance.now();
    block(SESSION_TIMEOUT_MS * 0.75);
    const blockedMs = performance.now() - startMs;
    while (stalls.length === 0) await turns(1);
    expect(stalls[0]?.sessionTimeoutMs).toBe(SESSION_TIMEOUT_MS);
    expect(stalls[0]?.stalledMs).toBeGreaterThan(SESSION_TIMEOUT_MS / 3);
    expect(stalls[0]?.stalledMs).toBeLessThanOrEqual(blockedMs);
    expect(await client.get('/')).toMatchObject({ stat: { version: 0 } });
    // Skipped if the machine stalled for longer.
    if (blockedMs < SESSION_TIMEOUT_MS * 0.8) expect([states.states, client.session?.id]).toEqual([[], id]);
  });

  test('for longer than the session timeout is reported; the session is lost before any reply arrives', async () => {
    const { lostSignal } = client;
    const id = client.session?.id;
    await client.create('/ephemeral', '', { mode: 'ephemeral' });
    block(SESSION_TIMEOUT_MS * 1.5);
    const write = outcomeOf(client.create('/late'));
    await states.until('lost');
    expect(lostSignal.aborted).toBe(true);
    expect(stalls).toHaveLength(1);
    const outcome = await write;
    const again = await states.until('connected');
    expect(again.sameSession).toBe(again.sessionId === id);
    expect((await client.exists('/ephemeral')) !== null).toBe(again.sameSession);
    if (outcome.ok || outcome.error.outcome === 'unknown')
      expect(outcome.ok ? '' : outcome.error.code).not.toBe('NONODE');
    else expect(await client.exists('/late')).toBeNull();
    if ((await client.exists('/late')) !== null) await client.delete('/late');
  });

  test('in the middle of replies: none is delivered once the session must be assumed lost', async () => {
    const { lostSignal } = client;
    // Each reply is a separate segment, so that those after the first stay in the socket while the loop is blocked.
    const large = new Uint8Array(200_000);
    await client.create('/large', large).catch(() => {});
    const seen: boolean[] = [];
    const first = client.get('/large').then(() => block(SESSION_TIMEOUT_MS * 1.2));
    const others = Array.from({ length: 20 }, () =>
      client.get('/large').then(
        () => seen.push(lostSignal.aborted),
        () => seen.push(true),
      ),
    );
    await first;
    await Promise.all(others);
    expect(seen).not.toContain(false);
    await states.until('connected');
  });

  test('for a moment is not reported', async () => {
    for (let i = 0; i < 5; i++) {
      block(SESSION_TIMEOUT_MS / 20);
      await client.get('/');
    }
    expect(stalls).toEqual([]);
    expect(states.states).toEqual([]);
  });
});
