import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { INLINING_FLAG } from './compiler.ts';

it('the flag that lets V8 inline more is one that V8 has', () => {
  const { stdout } = spawnSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
  expect(stdout).toContain(`${INLINING_FLAG} `);
});
