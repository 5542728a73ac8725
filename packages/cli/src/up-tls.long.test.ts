import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const MEERKAT = fileURLToPath(new URL('../bin/meerkat.js', import.meta.url));

test('meerkat up --tls runs an ensemble with TLS everywhere, and says how to connect to it', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'meerkat-up-tls-'));
  // Above the ports that systems hand out, and of this process alone.
  const port = String(61_000 + (process.pid % 1500));
  const up = spawn(process.execPath, [MEERKAT, 'up', '--tls', '--port', port], { cwd: directory, stdio: 'pipe' });
  const ended = once(up, 'exit');
  let output = '';
  up.stdout.on('data', (chunk) => {
    output += chunk;
  });
  try {
    await expect.poll(() => output).toMatch(/connect to .* with TLS: meerkat .*/);
    const [, servers = '', options = ''] = /connect to (\S+) with TLS: meerkat (.*)/.exec(output) ?? [];
    const words = [MEERKAT, '--server', servers, ...options.split(' ')];
    const acl = ['--acl', 'x509:CN=client:cdrwa'];
    const secure = spawnSync(process.execPath, [...words, 'create', '/mine', 'text', ...acl], { encoding: 'utf8' });
    expect(secure).toMatchObject({ status: 0, stderr: '' });
    const read = spawnSync(process.execPath, [...words, 'get', '/mine'], { encoding: 'utf8' });
    expect(read.stdout).toContain('text');
    const plain = spawnSync(process.execPath, [MEERKAT, '--server', servers, '--timeout', '2s', 'ls', '/'], {
      encoding: 'utf8',
    });
    expect(plain.status).not.toBe(0);
  } finally {
    up.kill('SIGTERM');
    await ended;
    rmSync(directory, { recursive: true, force: true });
  }
});
