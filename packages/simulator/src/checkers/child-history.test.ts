import { expect, test } from 'vitest';
import { ChildHistory } from './child-history.ts';

test('names at a zxid are those after its last step, independent of earlier queries', () => {
  const children = new ChildHistory();
  children.note(0, 'old', true);
  children.note(3, 'a', true);
  children.note(3, 'b', true);
  children.note(5, 'a', false);
  children.note(7, 'a', true);
  children.note(7, 'a', false);
  const due = new Map([
    [0, ['old']],
    [2, ['old']],
    [3, ['a', 'b', 'old']],
    [6, ['b', 'old']],
    [9, ['b', 'old']],
  ]);
  for (const zxid of [9, 0, 3, 2, 6, 3, 9, 6, 0]) expect(children.namesAt(zxid).sort()).toEqual(due.get(zxid));
});
