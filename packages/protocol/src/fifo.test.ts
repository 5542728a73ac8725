import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Fifo } from './fifo.ts';

describe('Fifo', () => {
  it('returns the items in the order in which they were added, for any sequence of operations', () => {
    const step = fc.oneof(fc.constant('push' as const), fc.constant('shift' as const), fc.constant('drop' as const));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const fifo = new Fifo<number>();
        const model: number[] = [];
        for (const [i, kind] of steps.entries()) {
          if (kind === 'push') {
            fifo.push(i);
            model.push(i);
          } else if (kind === 'shift') {
            expect(fifo.shift()).toBe(model.shift());
          } else {
            const count = Math.min(2, model.length);
            fifo.dropNewest(count);
            model.length -= count;
          }
          expect(fifo.length).toBe(model.length);
          expect(fifo.peek()).toBe(model[0]);
          expect([...fifo]).toEqual(model);
        }
      }),
    );
  });
});
