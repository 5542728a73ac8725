import { type CallOptions, type Client, nameOf } from '@meerkat/client';
import type { Command } from 'commander';
import { globMatcher } from '../tree/glob.ts';
import { isBelow, type TreeEntry } from './tree-entry.ts';
import { noEntries, type TreeEntries } from './tree-pairs.ts';
import { readTree, type TreeReading } from './tree-reader.ts';

/** Which part of a tree is meant, and what of its znodes. */
export interface TreeSelection {
  readonly withAcl: boolean;
  readonly isRecursive: boolean;
  readonly isLeftOut: (path: string) => boolean;
}

export interface SelectionWords {
  /** --no-acl makes it false. */
  readonly acl?: boolean;
  readonly exclude?: readonly string[];
}

/** @param acl what becomes of ACLs without it: `copy no ACLs: …` */
export function addSelectionOptions(command: Command, acl: string): Command {
  return command
    .option('--no-acl', acl)
    .option(
      '--exclude <pattern>',
      'leave these out with all below: names such as "lock-*", or paths from the top of the tree such as "/a/**/tmp"; may be given again',
      (pattern: string, before: readonly string[] = []) => [...before, pattern],
    );
}

export function selectionOf({ acl, exclude = [] }: SelectionWords, isRecursive: boolean): TreeSelection {
  const matchers = exclude.map((pattern) => {
    const isMatch = globMatcher(pattern);
    return pattern.includes('/') ? isMatch : (path: string) => isMatch(nameOf(path));
  });
  return { withAcl: acl !== false, isRecursive, isLeftOut: (path) => matchers.some((isMatch) => isMatch(path)) };
}

/** A tree of a service. @param whenMissing what a root that is not there means */
export async function* selectFromService(
  client: Client,
  root: string,
  selection: TreeSelection,
  call: CallOptions,
  whenMissing: 'fails' | 'is empty',
): AsyncGenerator<TreeEntry, void> {
  const reading: TreeReading = { ...selection, ...call };
  const isMissing = whenMissing === 'is empty' && (await client.exists(root, call)) === null;
  yield* isMissing ? noEntries() : readTree(client, root, reading);
}

/** The same of entries that have been read elsewhere. */
export async function* selectFrom(entries: TreeEntries, selection: TreeSelection): AsyncGenerator<TreeEntry, void> {
  let leftOut: string | null = null;
  for await (const entry of entries) {
    if (leftOut !== null && isBelow(entry.path, leftOut)) continue;
    leftOut = entry.path !== '/' && selection.isLeftOut(entry.path) ? entry.path : null;
    if (leftOut === null) yield selection.withAcl ? entry : { ...entry, acl: null };
    if (!selection.isRecursive) return;
  }
}
