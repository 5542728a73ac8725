import { describe, expect, test } from 'vitest';
import { excerptOf, searchLines } from './line-search.ts';

describe('searchLines', () => {
  const TEXT = 'one\ntwo\r\nthree two\nfour\nfive\nsix\n';
  const found = (expression: RegExp, context?: number): string[] =>
    searchLines(TEXT, expression, context).map(
      ({ number, text, ranges }) => `${number} ${text} ${ranges.map((range) => range.join('-')).join(',')}`,
    );

  test('reports the lines that match, and where', () => {
    expect(found(/two/g)).toEqual(['2 two 0-3', '3 three two 6-9']);
    expect(found(/^f|e$/g)).toEqual(['1 one 2-3', '4 four 0-1', '5 five 0-1,3-4']);
    expect(found(/seven/g)).toEqual([]);
  });

  test('adds lines around them, each once', () => {
    expect(found(/two/g, 1)).toEqual(['1 one ', '2 two 0-3', '3 three two 6-9', '4 four ']);
    expect(found(/one|six/g, 1)).toEqual(['1 one 0-3', '2 two ', '5 five ', '6 six 0-3']);
  });

  test('a line end at the end begins no line', () => {
    expect(searchLines('a\n', /^/g)).toHaveLength(1);
    expect(searchLines('a\n\nb', /^$/g)).toMatchObject([{ number: 2 }]);
  });
});

test('a long line is cut down to what is around its first match', () => {
  const text = `${'x'.repeat(500)}needle${'y'.repeat(500)}`;
  const [line] = searchLines(text, /needle/g);
  const { text: excerpt, ranges } = excerptOf(line!, 100);
  expect(excerpt).toBe(`…${'x'.repeat(60)}needle${'y'.repeat(34)}…`);
  expect(excerpt.slice(...ranges[0]!)).toBe('needle');
  expect(excerptOf(line!, 2000)).toBe(line);
});
