import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** Examples for the test runner of Node.js itself, which runs them. */
const NODE_TESTS = ['testing/client-node-test.mjs', 'testing/node-test.mjs'];

/** Pages that show examples. Each shown file is announced by a comment with its path, `<!-- examples/… -->`. */
const PAGES = ['packages/testing/README.md'];

describe('examples', () => {
  test.each(NODE_TESTS)('%s passes under node --test', async (name) => {
    const child = spawn(process.execPath, ['--test', join(import.meta.dirname, name)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Vitest's own variables are none of the example's business; NODE_OPTIONS may carry its loader.
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const [code] = await once(child, 'close');
    expect(output).toMatch(/pass [1-9]/);
    expect(code).toBe(0);
  });

  test('every example for Node.js alone is run here', () => {
    const names = readdirSync(import.meta.dirname, { recursive: true }).map(String);
    const alone = names.filter((name) => name.endsWith('.mjs'));
    expect(alone.sort()).toEqual([...NODE_TESTS].sort());
  });
});

describe('pages', () => {
  test.each(PAGES)('%s shows its examples as they are', (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const shown = [...text.matchAll(/<!-- (examples\/\S+) -->\n\n```\w+\n([\s\S]*?)```/g)];
    expect(shown.length).toBeGreaterThan(0);
    for (const [, path = '', code = ''] of shown) expect(code).toBe(readFileSync(join(ROOT, path), 'utf8'));
  });
});
