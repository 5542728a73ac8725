import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { globMatcher, hasWildcard } from './glob.ts';

/** Pattern, what it means, what it does not mean. */
const CASES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['/app/*/config', ['/app/a/config', '/app/.x/config'], ['/app/config', '/app/a/b/config', '/app/a/configs']],
  ['/app/w-?', ['/app/w-1'], ['/app/w-', '/app/w-12']],
  ['/app/**', ['/app/a', '/app/a/b', '/app/.a/.b'], ['/app', '/apple']],
  ['/app/**/config', ['/app/config', '/app/a/config', '/app/a/b/config'], ['/app/a', '/config']],
  ['lock-*', ['lock-', 'lock-0000000001', 'lock-.x'], ['a-lock-1', 'lock']],
  ['[abc]x', ['ax', 'bx'], ['dx', 'x']],
  ['[!a-c]x', ['dx'], ['ax', 'x']],
  ['[^a-c]x', ['dx'], ['ax']],
  ['[.+]x', ['.x', '+x'], ['ax']],
  ['{a,b}c', ['ac', 'bc'], ['c', 'a', '{a,b}c']],
  ['{a{b,c},d*}e', ['abe', 'ace', 'de', 'dxe'], ['ae', 'abce']],
  ['/x/{a,b/c}/d', ['/x/a/d', '/x/b/c/d'], ['/x/b/d']],
  ['{1..12}', ['1', '9', '10', '12'], ['0', '13', '01']],
  ['{08..10}', ['08', '09', '10'], ['8', '11']],
  ['{3..1}', ['3', '2', '1'], ['4']],
  ['a\\*[*]{\\,,x}', ['a**,', 'a**x'], ['ab*x', 'a*bx']],
  ['{a..c}', ['a', 'c'], ['d']],
];

describe('globMatcher', () => {
  test.each(CASES)('%s', (pattern, meant, notMeant) => {
    const isMatch = globMatcher(pattern);
    for (const path of meant) expect(isMatch(path), path).toBe(true);
    for (const path of notMeant) expect(isMatch(path), path).toBe(false);
  });

  test('a range that is too long or none stands for itself', () => {
    expect(globMatcher('{1..99999999}')('5')).toBe(false);
    expect(globMatcher('{1..99999999}')('{1..99999999}')).toBe(true);
  });

  test('upper and lower case can be the same', () => {
    expect(globMatcher('CONF*')('config')).toBe(false);
    expect(globMatcher('CONF*', { ignoresCase: true })('config')).toBe(true);
  });

  test('characters without a meaning stand for themselves, in front of a wildcard too', () => {
    const name = fc
      .stringMatching(/^[a-z0-9 "'()|+!@#$%^&.,:;<>=~`_-]{1,12}$/)
      .filter((text) => !/^\.{1,2}$/.test(text));
    fc.assert(
      fc.property(name, name, (text, other) => {
        expect(globMatcher(text)(text)).toBe(true);
        expect(globMatcher(`${text}*`)(`${text}x`)).toBe(true);
        expect(globMatcher(`/a/${text}`)(`/a/${other}`)).toBe(text === other);
      }),
    );
  });

  test('a backslash takes the meaning from any character', () => {
    const name = fc.stringMatching(/^[a-z0-9*?{}[\]\\,!^.-]{1,12}$/).filter((text) => !/^\.{1,2}$/.test(text));
    fc.assert(
      fc.property(name, name, (text, other) => {
        const pattern = text.replace(/./g, '\\$&');
        expect(globMatcher(pattern)(text)).toBe(true);
        expect(globMatcher(pattern)(other)).toBe(text === other);
        expect(hasWildcard(pattern)).toBe(true);
      }),
    );
  });

  test('an opening bracket or brace that is not closed stands for itself', () => {
    for (const text of ['[a', 'a[', '{a', '{a,b', '[]', '[!]', 'a}', 'a]', '{a}', '{}']) {
      expect(globMatcher(`${text}*`)(`${text}z`), text).toBe(true);
      expect(globMatcher(`${text}*`)('z'), text).toBe(false);
    }
  });
});

test('hasWildcard tells patterns from paths', () => {
  for (const pattern of ['/a*', '/a?', '/[ab]', '/{a,b}', '/a\\*']) expect(hasWildcard(pattern), pattern).toBe(true);
  for (const path of ['/', '/a/b.c', "/a(b)+'c'!"]) expect(hasWildcard(path), path).toBe(false);
});

test('a range in brackets that goes backwards is refused', () => {
  expect(() => globMatcher('[z-a]')).toThrow('"[z-a]" is no pattern');
});
