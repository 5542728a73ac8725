import { type Fault, formatFault } from './fault.ts';
import type { SimulateOptions } from './simulate.ts';

/** What a seed is run in: everything but the seed. */
export type Shape = Omit<SimulateOptions, 'seed'>;

/** The command that runs a seed again, with exactly these faults; null: with those that the seed draws. */
export function commandOf(shape: Shape, seed: number, plan: readonly Fault[] | null): string {
  const { servers = 3, observers = 0, spares = 0, groups, minutes = 1, traits, without, workload } = shape;
  const parts = [`--seed ${seed}`, `--servers ${servers}`];
  if (observers > 0) parts.push(`--observers ${observers}`);
  if (spares > 0) parts.push(`--spares ${spares}`);
  if (groups !== undefined) parts.push(groups === 'drawn' ? '--hierarchy' : `--groups ${groups}`);
  if (minutes !== 1) parts.push(`--minutes ${minutes}`);
  if (traits !== undefined) parts.push(`--traits ${traits.join(',') || 'none'}`);
  if (without !== undefined) parts.push(`--without ${without.join(',')}`);
  if (workload?.clients !== undefined) parts.push(`--clients ${workload.clients}`);
  if (workload?.operationsPerSecond !== undefined) parts.push(`--rate ${workload.operationsPerSecond}`);
  if (plan === null && shape.faults !== undefined) parts.push(`--faults ${shape.faults.join(',') || 'none'}`);
  for (const fault of plan ?? []) parts.push(`--fault '${formatFault(fault)}'`);
  if (plan?.length === 0) parts.push('--faults none');
  return `npm run simulate -- ${parts.join(' ')}`;
}
