import { expect, test } from 'vitest';
import { type ComparisonReport, compareServers } from './differential/comparison.ts';
import { DIFFERENTIAL_CONFIG } from './differential/config.ts';
import { RandomScript } from './differential/random-script.ts';
import { isLong } from './harness/long.ts';
import { describeWith } from './harness/peers.ts';
import { type ServerKind, ServerProcess } from './harness/server-process.ts';

const SEED = 1;

describeWith(['apache'], 'a random script, reply by reply', () => {
  // Checks the comparison itself: no difference is expected.
  if (isLong) {
    test('shows no difference between two Apache servers', async () => {
      const report = await compare('apache', 1_000);
      expect(report.differences.size).toBe(0);
    });
  }

  test('shows only known differences between Apache and Meerkat', async () => {
    const report = await compare('meerkat', isLong ? 6_000 : 2_000);
    // The script is only useful if it reaches most results.
    expect(report.outcomes.size).toBeGreaterThan(isLong ? 100 : 45);
    expect(report.notifications).toBeGreaterThan(isLong ? 500 : 50);
  });
});

async function compare(testedKind: ServerKind, steps: number): Promise<ComparisonReport> {
  await using reference = await ServerProcess.start('apache', { config: DIFFERENTIAL_CONFIG });
  await using tested = await ServerProcess.start(testedKind, { config: DIFFERENTIAL_CONFIG });
  return await compareServers({
    script: new RandomScript(SEED, steps),
    referencePort: reference.port,
    testedPort: tested.port,
    testedKind,
  });
}
