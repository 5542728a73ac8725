import { makeZxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { onDisk } from '../base/durable.ts';
import { ReceivedProposals } from './received-proposals.ts';

const z = (epoch: number, counter: number) => onDisk(makeZxid(epoch, counter));

describe('what may follow', () => {
  test('is the next zxid of the epoch, or the first of a later one', () => {
    const received = new ReceivedProposals(z(1, 5));
    expect(received.follows(z(1, 6))).toBe(true);
    expect(received.follows(z(3, 1))).toBe(true);
    for (const zxid of [z(1, 7), z(1, 5), z(1, 4), z(0, 6), z(3, 2), z(2, 0)])
      expect(received.follows(zxid)).toBe(false);
  });

  test('is (e,1) behind a snapshot of (e,0), where a leader of Apache begins', () => {
    expect(new ReceivedProposals(z(4, 0)).follows(z(4, 1))).toBe(true);
    expect(new ReceivedProposals(z(4, 0)).follows(z(4, 2))).toBe(false);
  });
});

describe('a commit', () => {
  test('commits what came before it as well', () => {
    const received = of(z(1, 5), z(1, 6), z(1, 7), z(2, 1), z(2, 2));
    expect(received.commit(z(2, 1))).toBe(true);
    expect(received.committedUpTo).toBe(z(2, 1));
  });

  test('that is repeated is ignored', () => {
    const received = of(z(1, 5), z(1, 6));
    for (const zxid of [z(1, 6), z(1, 6), z(1, 5), z(1, 2)]) expect(received.commit(zxid)).toBe(true);
    expect(received.committedUpTo).toBe(z(1, 6));
  });

  test('of a txn that was not received is refused, also between two epochs', () => {
    const received = of(z(1, 5), z(1, 6), z(2, 1));
    expect(received.commit(z(2, 2))).toBe(false);
    expect(received.commit(z(1, 7))).toBe(false);
  });
});

describe('acknowledging', () => {
  test('begins with what is not committed, and each proposal is taken once, oldest first', () => {
    const received = of(z(1, 5), z(1, 6), z(1, 7), z(2, 1));
    received.commit(z(1, 6));
    expect(received.takeUnacknowledged(z(2, 1))).toBeNull();
    received.beginAcknowledging();
    received.propose(z(2, 2));
    const taken = [z(2, 1), z(2, 1), z(2, 1), z(2, 2), z(2, 2)].map((upTo) => received.takeUnacknowledged(upTo));
    expect(taken).toEqual([z(1, 7), z(2, 1), null, z(2, 2), null]);
  });

  test('includes txns that are committed before they are durable here', () => {
    const received = of(z(1, 5));
    received.beginAcknowledging();
    received.propose(z(1, 6));
    received.commit(z(1, 6));
    expect(received.takeUnacknowledged(z(1, 6))).toBe(z(1, 6));
  });
});

function of(base: ReturnType<typeof z>, ...zxids: readonly ReturnType<typeof z>[]): ReceivedProposals {
  const received = new ReceivedProposals(base);
  for (const zxid of zxids) received.propose(zxid);
  return received;
}
