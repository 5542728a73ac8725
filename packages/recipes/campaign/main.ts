/**
 * `npm run simulate:recipes`: runs the simulations of the recipes with thousands of seeds. See docs/recipes/README.md,
 * "Simulation".
 */
import { execFileSync } from 'node:child_process';
import { findSimulations, makeBundle } from './bundle.ts';
import { Campaign } from './campaign.ts';
import { type CampaignOptions, parseOptions } from './options.ts';
import { appendRecord, endLastLine, readRecords } from './record-file.ts';
import { divide } from './slices.ts';
import { Totals } from './totals.ts';

/** A slice of the slowest simulation takes about ten seconds: processors may be idle for that long at the end. */
const SLICE_SEEDS = 5;

async function run(options: CampaignOptions, simulations: readonly string[]): Promise<number> {
  const { seeds, jobs, out, resumes } = options;
  const names = options.names.length === 0 ? simulations : options.names;
  // All simulations, so that the hash does not depend on which of them run.
  const bundle = await makeBundle(simulations);
  try {
    const totals = new Totals(names);
    const done = resumes && out !== null ? readRecords(out, bundle.hash) : [];
    for (const { name, outcomes } of done) {
      for (const outcome of outcomes)
        if (outcome.seed >= seeds.first && outcome.seed <= seeds.last) totals.add(name, outcome);
    }
    const commit = commitOf();
    if (out !== null) endLastLine(out);
    const campaign = new Campaign(bundle, divide(names, seeds, done, SLICE_SEEDS), totals, {
      onViolation: (text) => process.stdout.write(`${text}\n`),
      onProgress: (line) => process.stderr.write(`${line}\n`),
      onSliceDone: (slice, outcomes) => {
        if (out !== null) appendRecord(out, { ...slice, commit, bundle: bundle.hash, outcomes });
      },
    });
    let isCancelled = false;
    const cancel = (): void => {
      isCancelled = true;
      campaign.end();
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, cancel);
    await campaign.run(jobs);
    process.stderr.write(`${isCancelled ? 'cancelled after ' : ''}${campaign.progress}\n`);
    process.stdout.write(`${totals.format()}\n`);
    if (totals.violations > 0) return 1;
    return isCancelled ? 130 : 0;
  } finally {
    bundle.remove();
  }
}

/** The commit that is checked out, with `-dirty` appended when there are changes. */
function commitOf(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty', '--abbrev=12'], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

const simulations = findSimulations();
const options = parseOptions(process.argv.slice(2), simulations);
process.exitCode = typeof options === 'number' ? options : await run(options, simulations);
