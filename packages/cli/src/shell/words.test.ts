import { expect, test } from 'vitest';
import { scan } from './words.ts';

function words(text: string): readonly (readonly string[])[] {
  return scan(text).commands.map((command) => command.words);
}

test('words stand between blanks, in either kind of quotes, or have escapes', () => {
  expect(words('create /a hello')).toEqual([['create', '/a', 'hello']]);
  expect(words('  set   /a "two words"\t')).toEqual([['set', '/a', 'two words']]);
  expect(words(`set /a 'a "quoted" word'`)).toEqual([['set', '/a', 'a "quoted" word']]);
  expect(words('set /a "say \\"yes\\" \\\\ C:\\new"')).toEqual([['set', '/a', 'say "yes" \\ C:\\new']]);
  expect(words("set /a 'it'\\''s'")).toEqual([['set', '/a', "it's"]]);
  expect(words('get /with\\ blank')).toEqual([['get', '/with blank']]);
  expect(words('set /a ""')).toEqual([['set', '/a', '']]);
  expect(words("set /a $'a\\tb\\n\\x41\\u00e4\\'\\q'")).toEqual([['set', '/a', "a\tb\nAä'\\q"]]);
});

test('a quote inside a word is a character, as in zkCli, so that JSON is typed as it is', () => {
  expect(words('set /a {"debug":true}')).toEqual([['set', '/a', '{"debug":true}']]);
  expect(words("set /a don't")).toEqual([['set', '/a', "don't"]]);
  expect(words('set /a C:\\dir')).toEqual([['set', '/a', 'C:\\dir']]);
  expect(words('set /a --file="a b"')).toEqual([['set', '/a', '--file=a b']]);
});

test('commands end at a line feed or at a ";" with a blank behind it', () => {
  expect(words('ls /; get /x\nstat /')).toEqual([
    ['ls', '/'],
    ['get', '/x'],
    ['stat', '/'],
  ]);
  expect(words('ls / ;')).toEqual([['ls', '/']]);
  expect(words('reconfig -add server.4=zk4:2888:3888;2181')).toEqual([
    ['reconfig', '-add', 'server.4=zk4:2888:3888;2181'],
  ]);
  expect(words("set /a 'a; b'; ls")).toEqual([['set', '/a', 'a; b'], ['ls']]);
});

test('a comment goes from a "#" where a word could begin to the end of the line', () => {
  expect(words('# nothing\nls / # the root\n\nget /a#b')).toEqual([
    ['ls', '/'],
    ['get', '/a#b'],
  ]);
  expect(words('set /a \\#1')).toEqual([['set', '/a', '#1']]);
});

test('a quoted value continues over lines, and says so while it is open', () => {
  expect(scan('set /a "one').missing).toEqual({ kind: 'quote', quote: '"' });
  expect(scan("set /a 'one").missing).toEqual({ kind: 'quote', quote: "'" });
  expect(words('set /a "one\ntwo"\nls')).toEqual([['set', '/a', 'one\ntwo'], ['ls']]);
  expect(scan('set /a "one\ntwo"\nls').commands.map(({ lineNumber }) => lineNumber)).toEqual([1, 3]);
});

test('a backslash at the end of a line joins it with the next', () => {
  expect(scan('set /a \\').missing).toEqual({ kind: 'next-line' });
  expect(words('set /a \\\n  value')).toEqual([['set', '/a', 'value']]);
});

test('a here-document is one word: the lines up to its mark', () => {
  const text = 'set /a <<END --if-version 3; ls\n{\n  "b": 1\n}\nEND\nget /a';
  expect(words(text)).toEqual([['set', '/a', '{\n  "b": 1\n}', '--if-version', '3'], ['ls'], ['get', '/a']]);
  expect(scan('set /a <<END').missing).toEqual({ kind: 'document', mark: 'END' });
  expect(scan('set /a <<END\nEN').missing).toEqual({ kind: 'document', mark: 'END' });
  expect(scan('set /a <<END\nEND').missing).toBeNull();
  expect(words("set /a '<<END'")).toEqual([['set', '/a', '<<END']]);
});

test('what is complete ends where a command begins that continues', () => {
  expect(scan('ls\nget /a\n').completeLength).toBe(10);
  expect(scan('ls\nset /a "one\ntwo\n').completeLength).toBe(3);
  expect(scan('ls\npwd; set /a <<END\none\n').completeLength).toBe(8);
  expect(scan('ls\nget \\').completeLength).toBe(3);
});

test('the last command is known as far as it has come, for completion', () => {
  expect(scan('ls /; get /ap')).toMatchObject({
    last: [
      { text: 'get', start: 6 },
      { text: '/ap', start: 10 },
    ],
    isInWord: true,
  });
  expect(scan('get ')).toMatchObject({ last: [{ text: 'get', start: 0 }], isInWord: false });
  expect(scan('ls; ')).toMatchObject({ last: [], isInWord: false });
});
