import { expect, test } from 'vitest';
import { resolvePath } from './znode-path.ts';

test.each([
  ['/', 'app', '/app'],
  ['/app', 'config', '/app/config'],
  ['/app', './config/', '/app/config'],
  ['/app/config', '..', '/app'],
  ['/app', '../../..', '/'],
  ['/app', '/other//x/../y', '/other/y'],
  ['/app', '.', '/app'],
  ['/', '..hidden', '/..hidden'],
])('at %s, "%s" is %s', (current, typed, path) => {
  expect(resolvePath(current, typed)).toBe(path);
});
