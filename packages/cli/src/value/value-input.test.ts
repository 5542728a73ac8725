import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Io } from '../run/io.ts';
import { readValue, type ValueWords } from './value-input.ts';

function given(words: ValueWords, input: Readable = Readable.from([])): Promise<Uint8Array | null> {
  const io: Io = { stdin: input, stdout: new Writable(), stderr: new Writable(), env: {} };
  return readValue({ io, signal: new AbortController().signal }, words);
}

const bytes = (...numbers: number[]) => Uint8Array.from(numbers);

describe('the data of a command line', () => {
  it('are text as UTF-8, or none; the empty text is data', async () => {
    expect(await given({ value: 'ä' })).toEqual(bytes(0xc3, 0xa4));
    expect(await given({ value: '' })).toEqual(bytes());
    expect(await given({})).toBeNull();
  });

  it('are bytes in hex or base64, with white space between', async () => {
    expect(await given({ value: '00 ff\n7F', hex: true })).toEqual(bytes(0, 255, 127));
    expect(await given({ value: 'AP9/', base64: true })).toEqual(bytes(0, 255, 127));
    expect(await given({ value: '_-8', base64: true })).toEqual(bytes(0xff, 0xef));
  });

  it('come from standard input as they are', async () => {
    expect(await given({ value: '-' }, Readable.from([bytes(0), bytes(255, 10)]))).toEqual(bytes(0, 255, 10));
    expect(await given({ file: '-', hex: true }, Readable.from(['00f', 'f\n']))).toEqual(bytes(0, 255));
  });

  it('come from a file as they are, and a missing one is told', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'value-'));
    try {
      writeFileSync(join(directory, 'data'), bytes(0, 255));
      expect(await given({ file: join(directory, 'data') })).toEqual(bytes(0, 255));
      await expect(given({ file: join(directory, 'none') })).rejects.toThrow(
        /cannot read .*none: there is no such file/,
      );
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('are packed after they were checked', async () => {
    const packed = await given({ value: '{"a": 1}', json: true, gzip: true });
    expect(gunzipSync(packed ?? bytes()).toString()).toBe('{"a": 1}');
    await expect(given({ value: '{a: 1}', json: true, gzip: true })).rejects.toMatchObject({ exitCode: 25 });
  });

  it.each<[ValueWords, string]>([
    [{ value: 'a', file: 'b' }, 'there are two values'],
    [{ hex: true }, '--hex needs data'],
    [{ value: '0', hex: true }, 'no hex digits in pairs'],
    [{ value: 'zz', hex: true }, 'no hex digits in pairs'],
    [{ value: 'AAAAA', base64: true }, 'no base64'],
    [{ value: 'AA', base64: true, hex: true }, 'exclude each other'],
  ])('are refused in words: %j', async (words, message) => {
    await expect(given(words)).rejects.toThrow(message);
  });

  it('leave no listener behind when reading is interrupted', async () => {
    const stdin = new Readable({ read() {} });
    const io: Io = { stdin, stdout: new Writable(), stderr: new Writable(), env: {} };
    const controller = new AbortController();
    const reading = readValue({ io, signal: controller.signal }, { value: '-' });
    controller.abort();
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' });
    expect(stdin.eventNames()).not.toContain('data');
  });
});
