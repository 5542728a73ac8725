import { describe, expect, test } from 'vitest';
import { type LongReader, LongReadLimiter } from './long-read-limiter.ts';

class Guest implements LongReader {
  turns = 0;

  yieldTurn(): void {
    this.turns++;
  }
}

const guests = (count: number): Guest[] => Array.from({ length: count }, () => new Guest());

describe('the room for long reads', () => {
  test('admits a limited number, and the others in the order in which they came', () => {
    const room = new LongReadLimiter(2, 100);
    const [a, b, c, d] = guests(4) as [Guest, Guest, Guest, Guest];
    expect([a, b, c, d].map((guest) => room.enter(guest))).toEqual([true, true, false, false]);
    expect(room.enter(d), 'asking again does not help').toBe(false);
    room.leave(a);
    expect([c.turns, d.turns]).toEqual([1, 0]);
    expect([room.has(c), room.enter(c), room.has(d)]).toEqual([true, true, false]);
    expect(room.enter(a), 'one that returns waits behind the others').toBe(false);
    room.leave(b);
    room.leave(c);
    expect([room.has(d), room.has(a)]).toEqual([true, true]);
  });

  test('above the memory limit, lets only the oldest continue and admits none', () => {
    const room = new LongReadLimiter(10, 100);
    const [a, b, c] = guests(3) as [Guest, Guest, Guest];
    expect([room.enter(a), room.enter(b)]).toEqual([true, true]);
    room.hold(a, 40);
    room.hold(b, 50);
    expect([room.mayContinue(a), room.mayContinue(b)]).toEqual([true, true]);
    room.hold(b, 60);
    expect([room.mayContinue(a), room.mayContinue(b), room.enter(c)]).toEqual([true, false, false]);
    room.hold(a, 1000);
    expect([room.mayContinue(a), room.mayContinue(b)]).toEqual([true, false]);
    room.leave(a);
    expect([room.mayContinue(b), room.has(c)]).toEqual([true, true]);
  });

  test('forgets a guest that leaves while it waits', () => {
    const room = new LongReadLimiter(1, 100);
    const [a, b, c] = guests(3) as [Guest, Guest, Guest];
    for (const guest of [a, b, c]) room.enter(guest);
    room.leave(b);
    room.hold(b, 1000);
    room.leave(a);
    expect([b.turns, c.turns]).toEqual([0, 1]);
    expect(room.mayContinue(c)).toBe(true);
  });
});
