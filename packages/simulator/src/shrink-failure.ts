import type { Fault } from './fault.ts';
import { shorten, shrink } from './shrink.ts';
import { type SimulateOptions, type SimulateResult, simulate } from './simulate.ts';

/** The same seed with as few faults, as short as they can be, that still violate the same invariant. */
export async function shrinkFailure(
  options: SimulateOptions,
  result: SimulateResult,
  isCancelled: () => boolean,
  run: (options: SimulateOptions) => Promise<SimulateResult> = simulate,
): Promise<SimulateResult> {
  const invariant = result.violations[0]?.invariant;
  let smallest = result;
  const stillFails = async (plan: readonly Fault[]): Promise<boolean> => {
    if (isCancelled()) return false;
    const shorter = await run({ ...options, plan });
    if (shorter.violations[0]?.invariant !== invariant) return false;
    smallest = shorter;
    return true;
  };
  await shorten(await shrink(result.plan, stillFails), stillFails);
  return smallest;
}
