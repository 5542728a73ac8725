import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { CommandExit } from '../run/exit-code.ts';
import { formatValue, parseValueForm, type ValueForm } from './show-value.ts';

const BINARY = Uint8Array.from([0, 1, 2, 0xff, 0x41, 0x42, 0x7e, 0x7f, 0x80, 0x20, 0, 0, 0, 0, 0, 0x61, 0x0a]);

describe('formatValue', () => {
  const shown = (data: string | Uint8Array, as: ValueForm = 'auto'): string | Uint8Array =>
    formatValue(typeof data === 'string' ? new TextEncoder().encode(data) : data, as);

  test('gives people text with a line end, JSON laid out, gzip unpacked and bytes as a dump', () => {
    expect(shown('')).toBe('');
    expect(shown('on')).toBe('on\n');
    expect(shown('on\n')).toBe('on\n');
    expect(shown('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}\n');
    expect(shown('42')).toBe('42\n');
    expect(shown(gzipSync('{"a":1}'))).toBe('{\n  "a": 1\n}\n');
    expect(shown(gzipSync(gzipSync('twice')))).toBe('twice\n');
    // Made by hexdump -C, without its last line, which is the length.
    const dump = [
      '00000000  00 01 02 ff 41 42 7e 7f  80 20 00 00 00 00 00 61  |....AB~.. .....a|\n',
      '00000010  0a                                                |.|\n',
    ];
    expect(shown(BINARY)).toBe(dump.join(''));
  });

  test('gives the exact bytes as they are, in hex and in base64', () => {
    expect(shown(BINARY, 'raw')).toBe(BINARY);
    expect(shown('on', 'raw')).toEqual(new TextEncoder().encode('on'));
    expect(shown(BINARY, 'hex')).toBe('000102ff41427e7f80200000000000610a\n');
    expect(shown(BINARY, 'base64')).toBe('AAEC/0FCfn+AIAAAAAAAYQo=\n');
    expect(shown('ab', 'hexdump')).toBe(`00000000  61 62 ${' '.repeat(42)}  |ab|\n`);
  });

  test('refuses data that are not what they are said to be', () => {
    const refusal = { exitCode: CommandExit.undecodable };
    expect(() => shown(BINARY, 'text')).toThrow(expect.objectContaining(refusal));
    expect(() => shown('{"a":', 'json')).toThrow(expect.objectContaining(refusal));
    expect(shown(gzipSync('[1, 2]'), 'json')).toBe('[\n  1,\n  2\n]\n');
    expect(shown(gzipSync('text'), 'text')).toBe('text\n');
  });
});

test('parseValueForm names the forms there are', () => {
  expect(parseValueForm('hex', '--as')).toBe('hex');
  expect(() => parseValueForm('octal', '--as')).toThrow('--as: expected one of auto, raw, text, json, hex');
});
