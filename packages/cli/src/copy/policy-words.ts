import type { Command } from 'commander';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Existing } from './plan.ts';

/** What `cp` and `import` say alike about the target. */
export interface PolicyWords {
  readonly overwrite?: boolean;
  readonly skip?: boolean;
  readonly update?: boolean;
  readonly delete?: boolean;
  readonly parents?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

export function addPolicyOptions(command: Command): Command {
  return command
    .option('--overwrite', 'replace znodes of the target that differ (default: nothing is done when there is one)')
    .option('--skip', 'leave znodes of the target that differ')
    .option('--update', 'of two that differ, the one that was changed last stays')
    .option('--delete', 'delete what only the target has, so that it becomes a mirror; implies --overwrite')
    .option('-p, --parents', 'make missing ancestors of the target')
    .option('--dry-run', 'only print what would be done')
    .option('-y, --yes', 'do not ask before anything is overwritten or deleted');
}

export function policyOf(words: PolicyWords): { readonly existing: Existing; readonly isMirror: boolean } {
  const isMirror = words.delete === true;
  const chosen = (['overwrite', 'skip', 'update'] as const).filter((word) => words[word] === true);
  if (chosen.length > 1) {
    throw new InvocationFailure(`--${chosen.join(' and --')} contradict each other: choose one`);
  }
  return { existing: chosen[0] ?? (isMirror ? 'overwrite' : 'refuse'), isMirror };
}
