import { connect } from '@meerkat/client';
import { expect, onTestFailed, test } from 'vitest';
import { RawClient } from '../harness/raw-client.ts';
import { Ensemble } from './ensemble.ts';
import { writeUntilDone } from './workload.ts';

const CLOSED = 'the server closed the connection instead of answering the connect request';

test('with leaderServes=no a leader accepts no clients, and clients of a new leader move elsewhere', async () => {
  const ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }], {
    leaderServes: 'no',
  });
  onTestFailed(() => console.log(ensemble.logs));
  try {
    await using client = await connect(ensemble.connectString, {
      sessionTimeoutMs: 30_000,
      connectTimeoutMs: 60_000,
      backOff: { minMs: 5, maxMs: 50 },
    });
    await client.create('/deaths', '0', { mode: 'ephemeral' });
    const session = client.session?.id;
    for (let death = 1; death <= 2; death++) {
      const leader = await ensemble.leader();
      await expect(RawClient.connect(leader.server.port)).rejects.toThrow(CLOSED);
      expect(await ensemble.memberOf(session ?? 0n)).not.toBe(leader);
      await leader.server.kill();
      await writeUntilDone(client, '/deaths', String(death));
      await leader.server.restart();
    }
    expect(client.session?.id).toBe(session);
  } finally {
    await ensemble.dispose();
  }
});
