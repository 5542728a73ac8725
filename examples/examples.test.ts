import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

/** Examples for the test runner of Node.js. */
const NODE_TESTS = ['testing/client-node-test.mjs'];

describe('examples', () => {
  test.each(NODE_TESTS)('%s passes under node --test', async (name) => {
    const child = spawn(process.execPath, ['--test', join(import.meta.dirname, name)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Vitest's environment must not leak into the example: NODE_OPTIONS may contain its loader.
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const [code] = await once(child, 'close');
    expect(output).toMatch(/pass [1-9]/);
    expect(code).toBe(0);
  });

  test('every example for the Node.js test runner is run here', () => {
    const names = readdirSync(import.meta.dirname, { recursive: true }).map(String);
    const alone = names.filter((name) => name.endsWith('.mjs'));
    expect(alone.sort()).toEqual([...NODE_TESTS].sort());
  });
});
