import { expect, test } from 'vitest';
import { type ComparisonReport, compareServers } from './differential/comparison.ts';
import { DIFFERENTIAL_CONFIG } from './differential/config.ts';
import { describeWith } from './harness/peers.ts';
import { SERVER_KINDS, type ServerKind, ServerProcess } from './harness/server-process.ts';

const SEED = 1;

describeWith(['apache'], 'a random script, reply by reply', () => {
  test('shows no difference between two Apache servers', async () => {
    const report = await compare('apache', 4_000);
    expect(report.differences.size).toBe(0);
  });

  test.runIf(SERVER_KINDS.includes('meerkat'))('shows only known differences between Apache and Meerkat', async () => {
    const report = await compare('meerkat', 20_000);
    // The script is worth something only while it reaches most of what the server can say.
    expect(report.outcomes.size).toBeGreaterThan(120);
    expect(report.notifications).toBeGreaterThan(500);
  });
});

async function compare(testedKind: ServerKind, steps: number): Promise<ComparisonReport> {
  await using reference = await ServerProcess.start('apache', { config: DIFFERENTIAL_CONFIG });
  await using tested = await ServerProcess.start(testedKind, { config: DIFFERENTIAL_CONFIG });
  return await compareServers({
    seed: SEED,
    steps,
    referencePort: reference.port,
    testedPort: tested.port,
    testedKind,
  });
}
