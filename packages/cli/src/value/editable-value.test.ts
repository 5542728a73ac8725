import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { makeEditable } from './editable-value.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const textOf = (data: Uint8Array) => new TextDecoder().decode(data);
const edit = (data: Uint8Array | string, isHex = false) =>
  makeEditable(typeof data === 'string' ? bytes(data) : data, isHex, '/x');

describe('data that are edited', () => {
  it.each([
    '',
    'a',
    'a\n',
    'a\nb',
    '\n',
    '{"a":1}',
    '{"a": 1, "b": [true, null]}',
    '{ "a":1 }',
    '{\n "a": 1\n}\n',
    '[]',
  ])('are the same when nothing was changed: %j', async (text) => {
    const editable = edit(text);
    expect(textOf(await editable.toData(editable.text))).toBe(text);
    expect(editable.text === '' || editable.text.endsWith('\n')).toBe(true);
  });

  it('are JSON that is laid out, and on one line again in its style, to the last digit', async () => {
    const compact = edit('{"a":12345678901234567890,"b":"x: y, z"}');
    expect(compact.text).toBe('{\n  "a": 12345678901234567890,\n  "b": "x: y, z"\n}\n');
    expect(textOf(await compact.toData('{\n  "a": 12345678901234567891\n}\n'))).toBe('{"a":12345678901234567891}');
    expect(textOf(await edit('{"a": 1, "b": 2}').toData('{\n "a": [1,\n2]}'))).toBe('{"a": [1, 2]}');
    await expect(compact.toData('{"a": }')).rejects.toMatchObject({ exitCode: 25 });
  });

  it('keep to a line feed at the end, or to none', async () => {
    expect(textOf(await edit('a').toData('b\n'))).toBe('b');
    expect(textOf(await edit('a\n').toData('b\n'))).toBe('b\n');
    expect(textOf(await edit('').toData('b\n'))).toBe('b');
  });

  it('are unpacked and packed again, and the same bytes when nothing was changed', async () => {
    const packed = new Uint8Array(gzipSync('{"a":1}', { level: 1 }));
    const editable = edit(packed);
    expect(editable).toMatchObject({ text: '{\n  "a": 1\n}\n', suffix: '.json', setOptions: ' --json --gzip' });
    expect(await editable.toData(editable.text)).toBe(packed);
    expect(gunzipSync(await editable.toData('{"a":2}')).toString()).toBe('{"a":2}');
  });

  it('are hex digits when they are no text', async () => {
    const data = Uint8Array.from({ length: 18 }, (_, i) => i * 15);
    expect(() => edit(data)).toThrow(/no text: edit them as hex with --hex/);
    const editable = edit(data, true);
    expect(editable.text).toBe('00 0f 1e 2d  3c 4b 5a 69  78 87 96 a5  b4 c3 d2 e1\nf0 ff\n');
    expect(await editable.toData(editable.text)).toEqual(data);
    expect(await editable.toData('00ff')).toEqual(Uint8Array.of(0, 255));
  });
});
