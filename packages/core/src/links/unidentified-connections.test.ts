import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PeerAddress } from '../base/ports.ts';
import { UnidentifiedConnections } from './unidentified-connections.ts';

const from = (...ip: number[]): PeerAddress => ({ ip: new Uint8Array(ip), host: ip.join('.'), port: 1 });
const HERE = from(10, 0, 0, 1);
const THERE = from(10, 0, 0, 2);

/** Removes `count` strangers, one after the other. */
function shed<T>(strangers: UnidentifiedConnections<T>, count: number): T[] {
  const gone: T[] = [];
  for (let i = 0; i < count; i++) {
    const one = strangers.choose()!;
    strangers.delete(one);
    gone.push(one);
  }
  return gone;
}

test('the oldest stranger of the address with the most is chosen', () => {
  const strangers = new UnidentifiedConnections<string>();
  strangers.add('a', HERE);
  for (const name of ['b', 'c', 'd']) strangers.add(name, THERE);
  expect([...strangers]).toEqual(['a', 'b', 'c', 'd']);
  expect(shed(strangers, 4)).toEqual(['b', 'c', 'a', 'd']);
  expect(strangers.choose()).toBeNull();
});

test('of addresses with one stranger each, the oldest is chosen first, and a new one last', () => {
  const strangers = new UnidentifiedConnections<number>();
  for (let i = 0; i < 5; i++) strangers.add(i, from(10, 0, 0, i));
  strangers.add(5, from(10, 0, 0, 0));
  strangers.delete(0);
  expect(shed(strangers, 5)).toEqual([1, 2, 3, 4, 5]);
});

test('IPv6 addresses with the same first 64 bits count as one', () => {
  const strangers = new UnidentifiedConnections<number>();
  const subnet = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 1];
  strangers.add(0, HERE);
  for (let i = 1; i <= 2; i++) strangers.add(i, from(...subnet, 0, 0, 0, 0, 0, 0, 0, i));
  expect(shed(strangers, 2)).toEqual([1, 0]);
});

test('the choice is the same as with a full recount', () => {
  const step = fc.record({ host: fc.integer({ min: 0, max: 3 }), leaves: fc.option(fc.nat(20), { nil: null }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const strangers = new UnidentifiedConnections<number>();
      const hostOf = new Map<number, number>();
      for (const [i, { host, leaves }] of steps.entries()) {
        if (leaves === null) {
          strangers.add(i, from(10, 0, 0, host));
          hostOf.set(i, host);
        } else {
          expect(strangers.delete(leaves)).toBe(hostOf.delete(leaves));
        }
        const counts = new Map<number, number>();
        for (const each of hostOf.values()) counts.set(each, (counts.get(each) ?? 0) + 1);
        const most = Math.max(0, ...counts.values());
        const chosen = strangers.choose();
        if (chosen === null) {
          expect(hostOf.size).toBe(0);
        } else {
          const chosenHost = hostOf.get(chosen)!;
          expect(counts.get(chosenHost)).toBe(most);
          expect([...hostOf].find(([, each]) => each === chosenHost)![0]).toBe(chosen);
        }
        expect(strangers.size).toBe(hostOf.size);
      }
    }),
  );
});
