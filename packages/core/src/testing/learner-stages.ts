/** A learner with the txns 1 to 3 of epoch 1, at each stage of synchronizing with a leader of epoch 2. */
import { makeZxid, PacketType, type Zxid } from '@meerkat/protocol';
import { expect } from 'vitest';
import { TestLearner, type TestLearnerShape } from './test-learner.ts';

export const z: typeof makeZxid = makeZxid;
export const UPTODATE = { type: PacketType.upToDate } as const;
export const SYNC = { type: PacketType.sync } as const;
export const PING = { type: PacketType.ping, zxid: z(2, 1) } as const;
const LOG = [z(1, 1), z(1, 2), z(1, 3)];

/** A server with the txns 1 to 3 of epoch 1. */
export function makeLearner(shape: Partial<TestLearnerShape> = {}): TestLearner {
  return new TestLearner({ log: LOG, acceptedEpoch: 1, currentEpoch: 1, ...shape });
}

/** … that serves clients of a leader of epoch 2. */
export function synchronized(shape: Partial<TestLearnerShape> = {}): TestLearner {
  const one = makeLearner(shape);
  one.synchronize(2);
  expect(one.learner.phase).toBe('broadcast');
  one.takeAsked();
  return one;
}

/** … whose leader of epoch 2 has said how it synchronizes. */
export function catchingUp(shape: Partial<TestLearnerShape> = {}): TestLearner {
  const one = makeLearner(shape);
  one.beginDiff(2);
  one.takeAsked();
  return one;
}

export function stopReason(one: TestLearner): string | undefined {
  const stops = one.takeAsked().flatMap((asked) => (asked.kind === 'stop' ? [asked.reason] : []));
  expect(stops.length).toBeLessThanOrEqual(1);
  return stops[0];
}

export function committedBy(one: TestLearner): readonly Zxid[] {
  return one.takeAsked().flatMap((asked) => (asked.kind === 'committed' ? [asked.zxid] : []));
}
