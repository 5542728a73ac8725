import { expect, test } from 'vitest';
import { StatementError, splitStatements } from './statements.ts';

function wordsOf(text: string): readonly (readonly string[])[] {
  return splitStatements(text).map(({ words }) => words.map((word) => word.text));
}

test('splits words at white space and statements at line feeds, without comments', () => {
  const text = '# first\n\ncheck /a -v 3   # why\n\tset /b#c x\r\n';
  expect(wordsOf(text)).toEqual([
    ['check', '/a', '-v', '3'],
    ['set', '/b#c', 'x'],
  ]);
  expect(splitStatements(text).map(({ line }) => line)).toEqual([3, 4]);
});

test('takes single quotes as they are and escapes in double quotes, over lines and inside of words', () => {
  expect(wordsOf(`set /a 'x \\n "y"' "t\\tab\\u00e4\\u{1f600}\\\\" a"b"'c' ""`)).toEqual([
    ['set', '/a', 'x \\n "y"', 't\tabä😀\\', 'abc', ''],
  ]);
  const statements = splitStatements('set /a "one\ntwo"\nset /b x\\ y\\\nz');
  expect(statements.map(({ line, words }) => [line, words[2]?.text])).toEqual([
    [1, 'one\ntwo'],
    [3, 'x yz'],
  ]);
});

test('tells quoted words from bare ones, so that "@x" is a text and @x is not', () => {
  const [statement] = splitStatements('set "@x" @x \\@x');
  expect(statement?.words.map(({ isQuoted }) => isQuoted)).toEqual([false, true, false, true]);
});

test.each([
  ['set /a x\nset /b "open', 2, 'not closed'],
  ["set /a 'open\n\n", 1, 'not closed'],
  ['set /a "\n\\q"', 2, '"\\q" means nothing'],
  ['set /a "\\u{110000}"', 1, 'means nothing'],
])('says in which line %j is wrong', (text, line, message) => {
  const error = (() => {
    try {
      return splitStatements(text);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toBeInstanceOf(StatementError);
  expect(error).toMatchObject({ line, message: expect.stringContaining(message) });
});
