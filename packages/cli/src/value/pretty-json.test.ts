import fc from 'fast-check';
import { expect, test } from 'vitest';
import { prettyJson } from './pretty-json.ts';

test('lays out any JSON as JSON.stringify does', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 1, 4), (value, indent) => {
      expect(prettyJson(JSON.stringify(value, null, indent))).toBe(JSON.stringify(value, null, 2));
    }),
  );
});

test('numbers, names and their order stay as they are written', () => {
  const text = '{"b":12345678901234567890,"2":1.0,"1":1e400,"b":"\\u00e4\\/"}';
  expect(prettyJson(text)).toBe('{\n  "b": 12345678901234567890,\n  "2": 1.0,\n  "1": 1e400,\n  "b": "\\u00e4\\/"\n}');
});

test('a string that looks like JSON is left alone', () => {
  expect(prettyJson('["{ \\"a\\": [1, 2] }", {}, [ ]]')).toBe('[\n  "{ \\"a\\": [1, 2] }",\n  {},\n  []\n]');
});
