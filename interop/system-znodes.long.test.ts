import { expect, test } from 'vitest';
import { compareServers } from './differential/comparison.ts';
import { DIFFERENTIAL_CONFIG } from './differential/config.ts';
import { SystemScript } from './differential/system-script.ts';
import { describeWith } from './harness/peers.ts';
import { ServerProcess } from './harness/server-process.ts';

describeWith(['apache'], 'client operations on system znodes and quotas', () => {
  test('have the same results on both servers', async () => {
    await using reference = await ServerProcess.start('apache', { config: DIFFERENTIAL_CONFIG });
    await using tested = await ServerProcess.start('meerkat', { config: DIFFERENTIAL_CONFIG });
    const { outcomes } = await compareServers({
      script: new SystemScript(1, 8000),
      referencePort: reference.port,
      testedPort: tested.port,
      testedKind: 'meerkat',
    });
    // The script is only useful if quotas are exceeded and protected znodes are accessed.
    for (const outcome of ['create -125', 'setData -125', 'delete -8', 'create -102', 'setData -102']) {
      expect(outcomes.get(outcome), outcome).toBeGreaterThan(0);
    }
  });
});
