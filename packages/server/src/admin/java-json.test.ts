import { describe, expect, test } from 'vitest';
import { formatJson, JavaDouble, JsonFields, JsonList } from './java-json.ts';

function write(...entries: (readonly [string, Parameters<typeof formatJson>[0]])[]): string {
  return [...formatJson(new JsonFields(entries))].join('');
}

describe("JSON as Apache's admin server writes it", () => {
  test('has two blanks of indentation, blanks around colons, and lists in a line', () => {
    const inner = new JsonFields([['x', 1]]);
    // As recorded of Apache's 3.8.0.
    expect(
      write(['a', 'b'], ['list', new JsonList([1, 2])], ['objects', new JsonList([inner, inner])], ['none', null]),
    ).toBe(
      '{\n  "a" : "b",\n  "list" : [ 1, 2 ],\n  "objects" : [ {\n    "x" : 1\n  }, {\n    "x" : 1\n  } ],\n  "none" : null\n}',
    );
  });

  test('has a blank in what is empty', () => {
    expect(write(['list', new JsonList([])], ['object', new JsonFields([])])).toBe(
      '{\n  "list" : [ ],\n  "object" : { }\n}',
    );
  });

  test('has all digits of 64 bits, and a point in doubles', () => {
    const values = [72057594037927937n, new JavaDouble(0), new JavaDouble(1.5), new JavaDouble(12_345_678)];
    expect(write(['all', new JsonList(values)])).toBe('{\n  "all" : [ 72057594037927937, 0.0, 1.5, 1.2345678E7 ]\n}');
  });
});
