import { availableParallelism } from 'node:os';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { parseSeeds, type Seeds } from './slices.ts';

export interface CampaignOptions {
  /** Names of simulations; empty: all of them. */
  readonly names: readonly string[];
  readonly seeds: Seeds;
  readonly jobs: number;
  /** The file that slices are recorded in; null: none. */
  readonly out: string | null;
  /** Slices recorded there are not run again. */
  readonly resumes: boolean;
}

/**
 * @param simulations all simulations
 * @returns an exit code when there is nothing to run: help was requested or the arguments are invalid; a message has
 *   been printed
 */
export function parseOptions(args: readonly string[], simulations: readonly string[]): CampaignOptions | number {
  const command = new Command('npm run simulate:recipes --')
    .description('Runs the simulations of the recipes with many seeds, outside of vitest, on all processors.')
    .argument('[names...]', 'simulations, such as locks/mutex, mutex, or locks for a whole folder (default: all)')
    .requiredOption('--seeds <range>', 'such as 1..2000, or 17 alone', readSeeds)
    .option('--jobs <number>', 'processes', readCount, availableParallelism())
    .option('--out <file>', 'where each slice of seeds that is done is added as a line of JSON')
    .option('--resume', 'slices that the same sources have recorded in --out are not run again', false)
    .addHelpText('after', HELP)
    .showHelpAfterError('(--help says more)')
    .exitOverride();
  try {
    command.parse(args, { from: 'user' });
    const { seeds, jobs, out, resume } = command.opts<{ seeds: Seeds; jobs: number; out?: string; resume: boolean }>();
    if (resume && out === undefined) command.error('--resume needs --out');
    const names = command.args.flatMap((name) => {
      const found = simulations.filter((simulation) => isNamed(simulation, name));
      if (found.length === 0) command.error(`no simulation ${name}; there are ${simulations.join(', ')}`);
      return found;
    });
    return { names: [...new Set(names)], seeds, jobs, out: out ?? null, resumes: resume };
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
}

const HELP = `
Ctrl-C ends it with the table of what was done. Exit code 1: a promise was broken.
`;

/** By its full name, its folder, or its name without the folder. */
function isNamed(simulation: string, name: string): boolean {
  return simulation === name || simulation.split('/').includes(name);
}

function readSeeds(text: string): Seeds {
  const seeds = parseSeeds(text);
  if (seeds === null) throw new InvalidArgumentError('A number above 0, or a range such as 1..2000.');
  return seeds;
}

function readCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1) throw new InvalidArgumentError('A whole number above 0.');
  return count;
}
