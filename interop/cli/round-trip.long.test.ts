import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { arbitraryTree, ODD_LETTERS } from '../../packages/cli/src/copy/testing/arbitrary-tree.ts';
import { absolutePath, type TreeEntry } from '../../packages/cli/src/copy/tree-entry.ts';
import { describeWith } from '../harness/peers.ts';
import { SUPER_CREDENTIALS } from '../harness/server-process.ts';
import { CliSite } from './harness.ts';

/** The lines of znodes, without the header, which names the root and so differs. */
function znodesOf(file: string): readonly string[] {
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(1);
}

describeWith(['apache'], 'trees between our server and that of Apache, through files', () => {
  const sites = { ours: new CliSite('meerkat', {}), theirs: new CliSite('apache', {}) };

  async function build(site: CliSite, root: string, entries: readonly TreeEntry[]): Promise<void> {
    await site.client.addAuth('digest', SUPER_CREDENTIALS);
    const creations = entries.map(({ path, data, acl }) =>
      site.client.create(absolutePath(root, path), data, { acl: acl ?? undefined }),
    );
    await Promise.all(creations);
  }

  async function succeed(site: CliSite, ...args: string[]): Promise<void> {
    const ended = await site.run(['--auth', 'digest:ann:secret', ...args, '-q']);
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
  }

  let runs = 0;

  test.each([
    ['ours', 'theirs'],
    ['theirs', 'ours'],
  ] as const)('an export from %s, imported into %s and exported again, is identical', async (a, b) => {
    const [from, to] = [sites[a], sites[b]];
    const tree = arbitraryTree({ letters: ODD_LETTERS, znodesMax: 80 });
    await fc.assert(
      fc.asyncProperty(tree, async (entries) => {
        const root = `/tree-${++runs}`;
        const directory = from.directory();
        const file = (name: string): string => join(directory, name);
        await build(from, root, entries);
        await succeed(from, 'export', root, file('first'), '--no-stat');
        await succeed(to, 'import', file('first'));
        await succeed(to, 'export', root, file('second'), '--no-stat');
        expect(znodesOf(file('second'))).toEqual(znodesOf(file('first')));
        expect(znodesOf(file('first'))).toHaveLength(entries.length + 1);

        // The same through a directory, and back to the origin.
        await succeed(to, 'export', root, '--dir', file('unpacked'));
        await succeed(from, 'import', file('unpacked'), `${root}-again`);
        await succeed(from, 'export', `${root}-again`, file('third'), '--no-stat');
        expect(znodesOf(file('third'))).toEqual(znodesOf(file('first')));
        await succeed(from, 'diff', root, `zk://${to.address}${root}`);
      }),
      // A run starts seven commands, so a few runs with large trees.
      { numRuns: 3, endOnFailure: true },
    );
  });
});
