import { expect, test } from 'vitest';
import { SILENT_LOGGER } from '../logger.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Refusal } from './authorization.ts';
import { RestoreCommand } from './restore-command.ts';

const CALLER = { authorization: 'ip', remote: '127.0.0.1', forwardedFor: null, certificate: null };

interface World {
  readonly command: RestoreCommand;
  readonly metrics: Metrics;
  readonly done: ((error: Error | null) => void)[];
  /** Results, all of one caller. */
  readonly audited: readonly string[];
  nowMs: number;
}

function make(refusal: Refusal | null = null): World {
  const metrics = { restoresRateLimited: 0, restoreErrors: 0, restore: { add: () => {} } } as unknown as Metrics;
  const done: ((error: Error | null) => void)[] = [];
  const audited: string[] = [];
  const clock = { nowMs: 1 };
  const command = new RestoreCommand({
    isEnabled: true,
    isOfEnsemble: false,
    intervalMs: 300_000,
    snapshotDirectory: '/nowhere',
    diskFreeBytesMin: 0,
    bytesMax: 1000,
    authorization: { refusalOf: () => refusal },
    audit: {
      add: (operation, caller, result) => {
        expect([operation, caller]).toEqual(['restore', CALLER]);
        audited.push(result);
      },
      nameOf: () => 'ann',
    },
    metrics,
    logger: SILENT_LOGGER,
    core: { restore: (_snapshot, onDone) => done.push(onDone) },
    isServing: () => true,
    monotonicMs: () => clock.nowMs,
    deliver: (event) => event(),
  });
  return Object.assign(clock, { command, metrics, done, audited });
}

test('one restore at a time; when the thread that receives a snapshot ends, another one may begin', () => {
  const { command, metrics } = make();
  expect(command.begin(CALLER, true)).toHaveProperty('path');
  expect(command.begin(CALLER, true)).toEqual({ status: 429, error: null });
  command.abandon();
  expect(metrics.restoreErrors).toBe(1);
  expect(command.begin(CALLER, true)).toHaveProperty('path');
});

test('a restore that the core has begun continues without the thread, and no other one starts meanwhile', async () => {
  const { command, metrics, done } = make();
  command.begin(CALLER, true);
  const finished = command.finish({ zxid: 7 });
  command.abandon();
  expect(command.begin(CALLER, true)).toEqual({ status: 429, error: null });
  done[0]?.(null);
  expect(await finished).toEqual({ lastZxid: 7 });
  expect(metrics.restoreErrors).toBe(0);
});

test.each([null, new Error('damaged')])(
  'after a restore that ended with %s, a later one may be abandoned',
  async (error) => {
    const world = make();
    const { command, done } = world;
    command.begin(CALLER, true);
    const finished = command.finish({ zxid: 7 });
    done[0]?.(error);
    await finished;
    world.nowMs += 300_000;
    expect(command.begin(CALLER, true)).toHaveProperty('path');
    command.abandon();
    expect(command.begin(CALLER, true)).toHaveProperty('path');
  },
);

test('each restore is audited once: when it is refused, when its body is invalid, when it is done', async () => {
  const refused = make({ status: 403, error: 'Not authorized' });
  refused.command.begin(CALLER, true);
  expect(refused.audited).toEqual(['failure']);
  const lost = make();
  lost.command.begin(CALLER, true);
  expect(lost.audited).toEqual([]);
  lost.command.abandon();
  expect(lost.audited).toEqual(['failure']);
  lost.command.begin(CALLER, true);
  await lost.command.finish({ fault: 'it is cut off' });
  expect(lost.audited).toEqual(['failure', 'failure']);
  lost.command.abandon();
  expect(lost.audited).toHaveLength(2);
  const { command, done, audited } = make();
  command.begin(CALLER, true);
  const finished = command.finish({ zxid: 7 });
  expect(audited).toEqual([]);
  done[0]?.(null);
  await finished;
  expect(audited).toEqual(['success']);
});
