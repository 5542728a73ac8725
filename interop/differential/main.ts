/**
 * The long comparison: `npm run differential -- --ops 200000 --seed 1`.
 *
 * Starts Apache's server and ours (or a second Apache with `--tested apache`), each on a fresh directory, and runs the
 * random script. `--print` shows every step, `--verbose` the number of results by op and error. Exits with 1 at the
 * first difference and prints it.
 */
import { parseArgs } from 'node:util';
import { type ServerKind, ServerProcess } from '../harness/server-process.ts';
import { type ComparisonReport, compareServers } from './comparison.ts';
import { DIFFERENTIAL_CONFIG } from './config.ts';
import { RandomScript } from './random-script.ts';

const { values } = parseArgs({
  options: {
    ops: { type: 'string', default: '200000' },
    seed: { type: 'string', default: '1' },
    tested: { type: 'string', default: 'meerkat' },
    print: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
});

const testedKind: ServerKind = values.tested === 'apache' ? 'apache' : 'meerkat';
const servers: ServerProcess[] = [];
try {
  const reference = await ServerProcess.start('apache', { config: DIFFERENTIAL_CONFIG });
  servers.push(reference);
  const tested = await ServerProcess.start(testedKind, { config: DIFFERENTIAL_CONFIG });
  servers.push(tested);
  const report = await compareServers({
    script: new RandomScript(Number(values.seed), Number(values.ops)),
    referencePort: reference.port,
    testedPort: tested.port,
    testedKind,
    ...(values.print ? { onStep: (line: string) => console.log(line) } : {}),
    onProgress: (steps) => console.log(`${steps} steps`),
  });
  print(report);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  for (const server of servers) await server.dispose();
}

function print(report: ComparisonReport): void {
  console.log(`${report.steps} steps and ${report.notifications} notifications without an unknown difference`);
  for (const [name, times] of report.differences) console.log(`  known difference, ${times} times: ${name}`);
  if (!values.verbose) return;
  for (const [outcome, times] of [...report.outcomes].sort()) console.log(`  ${outcome}: ${times}`);
}
