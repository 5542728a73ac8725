import { expect, test } from 'vitest';
import { splitLine } from './words.ts';

test.each([
  ['meerkat ls /a', ['meerkat', 'ls', '/a']],
  ['meerkat ls ', ['meerkat', 'ls', '']],
  ['meerkat  ls\t/a', ['meerkat', 'ls', '/a']],
  [`meerkat ls '/a b' "/c d"`, ['meerkat', 'ls', '/a b', '/c d']],
  ['meerkat ls "/a b', ['meerkat', 'ls', '/a b']],
  ['meerkat ls /a\\ b', ['meerkat', 'ls', '/a b']],
  ['meerkat set /a "say \\"hi\\" \\n"', ['meerkat', 'set', '/a', 'say "hi" \\n']],
  [`meerkat set /a '\\'`, ['meerkat', 'set', '/a', '\\']],
  ['meerkat set /a ""', ['meerkat', 'set', '/a', '']],
  ['meerkat set /a\'b\'"c"', ['meerkat', 'set', '/abc']],
  ['', ['']],
])('%s is taken apart as a shell does', (line, words) => {
  expect(splitLine(line)).toEqual(words);
});
