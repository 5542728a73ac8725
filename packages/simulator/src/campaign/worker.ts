/** A process of a campaign: is sent options, and answers each with its outcome. Its parent ends it. */
import { type SimulateOptions, simulate } from '../simulate.ts';
import type { SeedOutcome } from './tally.ts';

const VIOLATIONS_MAX = 3;

process.on('message', (options: SimulateOptions) => {
  void run(options);
});
process.on('disconnect', () => process.exit());
// Ctrl-C reaches the whole group: the parent says what was done.
process.on('SIGINT', () => {});

async function run(options: SimulateOptions): Promise<void> {
  const { seed, stats, plan, violations } = await simulate(options);
  const outcome: SeedOutcome = { seed, stats, plan, violations: violations.slice(0, VIOLATIONS_MAX) };
  process.send?.(outcome);
}
