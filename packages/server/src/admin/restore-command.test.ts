import { expect, test } from 'vitest';
import { SILENT_LOGGER } from '../logger.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { AdminAuthorization } from './authorization.ts';
import { RestoreCommand } from './restore-command.ts';

const CALLER = { authorization: 'ip', remote: '127.0.0.1', forwardedFor: null, certificate: null };

function make(): { command: RestoreCommand; metrics: Metrics; done: ((error: Error | null) => void)[] } {
  const metrics = { restoresRateLimited: 0, restoreErrors: 0, restore: { add: () => {} } } as unknown as Metrics;
  const done: ((error: Error | null) => void)[] = [];
  const command = new RestoreCommand({
    isEnabled: true,
    isOfEnsemble: false,
    intervalMs: 300_000,
    snapshotDirectory: '/nowhere',
    diskFreeBytesMin: 0,
    bytesMax: 1000,
    authorization: { refusalOf: () => null } as unknown as AdminAuthorization,
    metrics,
    logger: SILENT_LOGGER,
    core: { restore: (_snapshot, onDone) => done.push(onDone) },
    isServing: () => true,
    monotonicMs: () => 1,
    deliver: (event) => event(),
  });
  return { command, metrics, done };
}

test('one restore at a time; when the thread that receives a snapshot ends, another one may begin', () => {
  const { command, metrics } = make();
  expect(command.begin(CALLER, true)).toHaveProperty('path');
  expect(command.begin(CALLER, true)).toEqual({ status: 429, error: null });
  command.abandon();
  expect(metrics.restoreErrors).toBe(1);
  expect(command.begin(CALLER, true)).toHaveProperty('path');
});

test('a restore that the core has begun goes on without the thread, and none begins beside it', async () => {
  const { command, metrics, done } = make();
  command.begin(CALLER, true);
  const finished = command.finish({ zxid: 7 });
  command.abandon();
  expect(command.begin(CALLER, true)).toEqual({ status: 429, error: null });
  done[0]?.(null);
  expect(await finished).toEqual({ lastZxid: 7 });
  expect(metrics.restoreErrors).toBe(0);
});
