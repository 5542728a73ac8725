import { expect, test } from 'vitest';
import { GoKey } from './go-key.ts';

test('only a key soon after g switches to a view, also right after the page is loaded', () => {
  const key = new GoKey();
  expect(key.take(100), 'nothing was pressed before').toBe(false);
  key.press(200);
  expect(key.take(1000)).toBe(true);
  expect(key.take(1100), 'it goes once').toBe(false);
  key.press(2000);
  expect(key.take(3500), 'too late').toBe(false);
});
