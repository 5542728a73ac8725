/** A server that cannot bind its quorum port, which another program uses, must not block the others. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, onTestFailed, test } from 'vitest';
import { describeWith, type Peer } from '../harness/peers.ts';
import type { ServerKind } from '../harness/server-process.ts';
import { Ensemble, type Member } from './ensemble.ts';
import { startWriter, type Writer, waitForProgress } from './load.ts';
import { connectTo } from './workload.ts';

/** Maximum milliseconds without a write during a leader change, on a busy machine. */
const GAP_MAX_MS = 8000;

const MIXES: readonly (readonly [string, readonly Peer[], readonly ServerKind[]])[] = [
  ['of our servers', [], ['meerkat', 'meerkat', 'meerkat']],
  ["with two of Apache's", ['apache'], ['apache', 'apache', 'meerkat']],
];

describe.each(MIXES)('an ensemble %s, whose best candidate cannot bind its port', (_, peers, kinds) => {
  describeWith(peers, 'under load', () => {
    test('elects another one at once, and the best one again when it can', async () => {
      const ensemble = await Ensemble.start(kinds.map((kind) => ({ kind })));
      onTestFailed(() => console.log(ensemble.logs));
      try {
        const [one, two, three] = ensemble.members as [Member, Member, Member];
        await using writer = await startWriter(ensemble.connectString, '/written', 60_000);
        await waitForProgress([writer]);
        await three.server.stop();
        const stranger = createServer((socket) => socket.destroy()).listen(three.quorumPort, '127.0.0.1');
        await once(stranger, 'listening');
        await three.server.restart();
        await expect
          .poll(() => three.server.output)
          .toMatch(/cannot listen for followers at .*: EADDRINUSE.* does not stand for leader/);
        // Both others have to be elected once, at least once with the vote of the third.
        for (let i = 0; i < 3; i++) {
          await waitForProgress([writer]);
          const dying = await ensemble.leader();
          expect(dying).not.toBe(three);
          await dying.server.kill();
          const [gapMs] = await Promise.all([gapOf(writer), dying.server.restart()]);
          expect(gapMs).toBeLessThan(GAP_MAX_MS);
        }
        stranger.close();
        await once(stranger, 'close');
        while (!/listens for followers/.test(three.server.output)) await pause(20);
        await waitForProgress([writer]);
        await Promise.all([one.server.stop(), two.server.stop()]);
        await Promise.all([one.server.restart(), two.server.restart()]);
        expect(await ensemble.leader()).toBe(three);
        await waitForProgress([writer]);
        const { count } = await writer.finish();
        await using client = await connectTo(one);
        await client.sync();
        // Plus `register` and `mine`.
        expect((await client.children('/written')).children).toHaveLength(count + 2);
      } finally {
        await ensemble.dispose();
      }
    });
  });
});

/** Milliseconds until the next write is acknowledged. */
async function gapOf(writer: Writer): Promise<number> {
  const before = writer.acknowledged;
  const startMs = performance.now();
  while (writer.acknowledged === before) await pause(1);
  return Math.round(performance.now() - startMs);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
