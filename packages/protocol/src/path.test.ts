import { describe, expect, test } from 'vitest';
import { describePathFault, isValidPath, joinPath, nameOf, parentOf } from './path.ts';

test.each([
  '/',
  '/a',
  '/a/b',
  '/...',
  '/.a',
  '/a.',
  '/..a',
  '/a..b',
  '/ä',
  '/日本',
  '/a b',
  '/~',
  '/\u00a0',
  '/\ud7ff',
  '/\uf900',
  '/\uffef',
])('%j is a legal path', (path) => {
  expect(describePathFault(path)).toBeNull();
  expect(isValidPath(path)).toBe(true);
});

test.each([
  ['', 'empty'],
  ['a', 'does not start'],
  ['a/b', 'does not start'],
  ['/a/', 'ends with'],
  ['//', 'ends with'],
  ['//a', 'empty name'],
  ['/a//b', 'empty name'],
  ['/.', '"."'],
  ['/./a', '"."'],
  ['/a/.', '"."'],
  ['/..', '".."'],
  ['/a/../b', '".."'],
  ['/a/..', '".."'],
])('%j is not: %s', (path, fault) => {
  expect(describePathFault(path)).toContain(fault);
});

test('the illegal characters are exactly those of the rule', () => {
  const isIllegal = (c: number) =>
    c <= 0x1f || (c >= 0x7f && c <= 0x9f) || (c >= 0xd800 && c <= 0xf8ff) || (c >= 0xfff0 && c <= 0xffff);
  const wrong: string[] = [];
  for (let code = 0; code <= 0xffff; code++) {
    if (code === 0x2f || code === 0x2e) continue;
    const character = String.fromCharCode(code);
    const isAlwaysRight = [`/a${character}b`, `/${character}`].every((path) => isValidPath(path) !== isIllegal(code));
    if (!isAlwaysRight) wrong.push(`U+${code.toString(16)}`);
  }
  expect(wrong).toEqual([]);
});

test('a character beyond U+FFFF is illegal, because it is two surrogates', () => {
  expect(describePathFault('/😀')).toContain('U+d83d at 1');
});

describe('the parts of a path', () => {
  test.each([
    ['/a/b', '/a', 'b'],
    ['/a', '/', 'a'],
    ['/a/b/c', '/a/b', 'c'],
    // Relative paths reach the server too: their parent does not exist.
    ['a/b', 'a', 'b'],
    ['a', '', 'a'],
  ])('%j has the parent %j and the name %j', (path, parent, name) => {
    expect(parentOf(path)).toBe(parent);
    expect(nameOf(path)).toBe(name);
  });

  test('the root has neither', () => {
    expect(parentOf('/')).toBe('');
    expect(nameOf('/')).toBe('');
  });

  test('join to the path again', () => {
    expect(joinPath('/', 'a')).toBe('/a');
    expect(joinPath('/a', 'b')).toBe('/a/b');
  });
});
