// Saturated ensembles: operations per second of CPU of all servers together. Sessions are spread over the servers.
import { zkload } from '../../load-generator.mjs';
import { locked } from '../../measure-lock.mjs';

const SATURATED = { conns: 32, depth: 16 };

export const ENSEMBLE_WORKLOADS = [
  { title: 'reads, 1 KiB', options: { read: 100, size: 1024, ...SATURATED }, must: 5, aim: 8 },
  { title: 'durable writes, 1 KiB', options: { read: 0, size: 1024, ...SATURATED }, must: 3, aim: 3 },
  {
    title: 'durable writes, 100 B',
    options: { read: 0, size: 100, root: '/zkl100', ...SATURATED },
    must: 2,
    aim: 3,
  },
  { title: '90 % reads, 1 KiB', options: { read: 90, size: 1024, ...SATURATED } },
];

/** Runs one workload on each ensemble alternately. */
export async function measureEnsembleThroughput(workload, ensembles, { pairs, seconds }) {
  const figures = { apache: [], meerkat: [] };
  const options = { ...workload.options, warmup: 0.7, secs: seconds };
  for (let pair = 0; pair < pairs; pair++) {
    for (const ensemble of pair % 2 === 0 ? ensembles : ensembles.toReversed()) {
      const result = await locked(() => zkload('load', ensemble, options));
      figures[ensemble.engine.name].push(result.ops_per_cpu_s);
    }
  }
  return {
    title: `${workload.title} (per CPU-second of all servers)`,
    unit: '',
    reference: figures.apache,
    meerkat: figures.meerkat,
    must: workload.must && { ratioMin: workload.must },
    aim: workload.aim && { ratioMin: workload.aim },
  };
}
