import { performance } from 'node:perf_hooks';
import { describe, expect, test } from 'vitest';
import { WorkBudget } from './work-budget.ts';

describe('the budget of work for administrators', () => {
  test('works in turn on all that there is, to its end', async () => {
    const budget = new WorkBudget();
    const order: string[] = [];
    const done = ['a', 'b'].map(
      (name) =>
        new Promise<void>((resolve) => {
          let left = 3;
          budget.add({
            next: () => {
              order.push(name);
              const startedMs = performance.now();
              while (performance.now() - startedMs < 1.1);
              left--;
              if (left === 0) resolve();
              return left === 0 ? { done: true, value: undefined } : { done: false, value: undefined };
            },
          });
        }),
    );
    await Promise.all(done);
    expect(order).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
  });
});
