import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Logger } from './logger.ts';
import { ServiceManager } from './service-manager.ts';

let directory = '';
let path: string | undefined;

/** A systemd-notify that records its arguments. */
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-manager-'));
  const program = join(directory, 'systemd-notify');
  writeFileSync(program, `#!/bin/sh\n[ "$1" != STOPPING=1 ] || code=7\necho "$*" >> '${directory}/told'\nexit $code\n`);
  chmodSync(program, 0o755);
  path = process.env['PATH'];
  process.env['PATH'] = `${directory}${delimiter}${path}`;
});

afterEach(() => {
  process.env['PATH'] = path;
  rmSync(directory, { recursive: true, force: true });
});

const logged: string[] = [];
const LOGGER: Logger = { log: (_level, message) => void logged.push(message) };

function notifications(): readonly string[] {
  const file = join(directory, 'told');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

test('the manager is told once that the service is ready, and of roles the latest, in their order', async () => {
  const manager = new ServiceManager({ NOTIFY_SOCKET: '/run/notify' }, LOGGER);
  manager.trace.emit({ kind: 'role-changed', role: 'looking', leader: null, reason: 'test' });
  manager.trace.emit({ kind: 'role-changed', role: 'following', leader: 2, reason: 'test' });
  manager.trace.emit({ kind: 'epoch-established', epoch: 5, zxid: 1 });
  manager.onReady('clients are served');
  manager.onReady('looks for a leader');
  manager.onStopping();
  manager.trace.emit({ kind: 'role-changed', role: 'looking', leader: null, reason: 'stops' });
  await expect
    .poll(notifications)
    .toEqual([
      'STATUS=looks for a leader: clients are not served',
      'READY=1 STATUS=clients are served',
      'STOPPING=1 STATUS=finishes what is in flight',
    ]);
  await expect.poll(() => logged).toEqual(['cannot tell systemd STOPPING=1: systemd-notify ended with exit code 7']);
});

test('without a manager nothing is started', () => {
  const manager = new ServiceManager({}, LOGGER);
  expect(manager.isThere).toBe(false);
  manager.onReady('clients are served');
  manager.onStopping();
  expect(notifications()).toEqual([]);
});
