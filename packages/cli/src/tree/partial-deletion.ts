import type { DeleteProgress } from '@meerkat/client';
import { count } from '../output/stat-columns.ts';

/**
 * What is certain of a recursive delete that has ended early: deletions that were not answered may have been carried out,
 * also the very first.
 *
 * @param before znodes deleted of other trees
 */
export function describePartialDeletion(path: string, { deleted, found }: DeleteProgress, before = 0): string {
  // Nothing is deleted before all is found.
  if (found === 0 && before === 0) return 'nothing was deleted';
  if (found === 0) return `deleted ${count(before)} znodes; of ${path}, nothing was deleted`;
  return `deleted at least ${count(before + deleted)} znodes; of ${path}, at most ${count(found - deleted)} are left`;
}
