import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { kindOf, textOf } from './value-kind.ts';

describe('data', () => {
  test.each([
    ['', 'empty'],
    ['plain words, ümläute and 西瓜\n\tindented\r\n', 'text'],
    ['42', 'text'],
    ['{"a":1}', 'json'],
    [' [1, 2]\n', 'json'],
    ['{"a":', 'text'],
    ['\x1b[31mred', 'binary'],
    ['\x9b31mred', 'binary'],
    ['bell\x07', 'binary'],
  ])('%j look like %s', (text, kind) => {
    expect(kindOf(Buffer.from(text))).toBe(kind);
  });

  test('that are no UTF-8 are binary, and what is packed is told apart from what only begins like it', () => {
    expect(kindOf(Buffer.from([0xff, 0xfe]))).toBe('binary');
    expect(kindOf(gzipSync('text'))).toBe('gzip');
    expect(kindOf(Buffer.from([0x1f, 0x8b, 8, 0]))).toBe('binary');
  });

  test('keep a byte order mark when they are text', () => {
    expect(textOf(Buffer.from('\ufefftext'))).toBe('\ufefftext');
  });
});
