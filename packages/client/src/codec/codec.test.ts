import { gzipSync } from 'node:zlib';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { bytes, nullableBytes } from './bytes.ts';
import type { Codec, CodecValue } from './codec.ts';
import { decodeAt } from './decode-at.ts';
import { DecodeError } from './decode-error.ts';
import { gzip } from './gzip.ts';
import { json } from './json.ts';
import type { StandardSchema } from './standard-schema.ts';
import { text } from './text.ts';

describe('bytes', () => {
  test('data is unchanged, and null reads as empty', () => {
    expect(bytes.encode(utf8('x'))).toEqual(utf8('x'));
    expect(bytes.decode(utf8('x'))).toEqual(utf8('x'));
    expect(bytes.decode(null)).toEqual(new Uint8Array(0));
  });

  test('nullableBytes distinguishes null from empty', () => {
    expect(nullableBytes.encode(null)).toBeNull();
    expect(nullableBytes.decode(null)).toBeNull();
    expect(nullableBytes.decode(new Uint8Array(0))).toEqual(new Uint8Array(0));
  });
});

describe('text', () => {
  test('text is UTF-8', () => {
    expect(text.encode('ä€')).toEqual(Uint8Array.of(0xc3, 0xa4, 0xe2, 0x82, 0xac));
    expect(text.decode(Uint8Array.of(0xc3, 0xa4, 0xe2, 0x82, 0xac))).toBe('ä€');
    expect(text.decode(null)).toBe('');
  });

  test('a byte order mark is kept, so that a value can be written back unchanged', () => {
    expect(text.decode(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toBe('\ufeffa');
  });

  test('bytes that are not UTF-8 are refused, and the error contains them', async () => {
    const data = Uint8Array.of(0x61, 0xff);

    const error = await failureOf(text, data);

    expect(error).toBeInstanceOf(DecodeError);
    expect(error).toMatchObject({ code: 'DECODEFAILED', path: '/a', outcome: 'not-applied', data });
    expect(error.name).toBe('DecodeError');
  });
});

describe('json', () => {
  test('JSON without a schema is parsed as is', () => {
    expect(json().decode(utf8('{"a":[1,null]}'))).toEqual({ a: [1, null] });
    expect(json<{ a: number }>().encode({ a: 1 })).toEqual(utf8('{"a":1}'));
  });

  test('an object that is not a standard schema is refused at once', () => {
    // As in a program without types.
    const schema = { parse: (value: unknown) => value } as unknown as StandardSchema<unknown>;
    expect(() => json(schema)).toThrow('json: the schema does not speak Standard Schema');
  });

  test('a byte order mark left by an editor is skipped', () => {
    expect(json().decode(Uint8Array.of(0xef, 0xbb, 0xbf, 0x31))).toBe(1);
  });

  test.each([
    ['nothing', null],
    ['an empty znode', new Uint8Array(0)],
    ['broken JSON', utf8('{"a":')],
  ])('%s is refused', async (_name, data) => {
    expect((await failureOf(json(), data)).cause).toBeInstanceOf(SyntaxError);
  });

  test('a value without a JSON representation is refused when it is written', () => {
    expect(() => json().encode(undefined)).toThrow('a value of type undefined has no JSON');
  });

  test('a zod schema validates data that is read, and the error shows the position', async () => {
    const codec = json(z.object({ servers: z.array(z.object({ port: z.number() })) }));

    const error = await failureOf(codec, utf8('{"servers":[{"port":"x"}]}'));

    expect(await codec.decode(utf8('{"servers":[{"port":1}]}'))).toEqual({ servers: [{ port: 1 }] });
    expect(error.message).toMatch(/^get \/a: .*servers\.0\.port: /);
    expect(error.cause).toMatchObject({ name: 'SchemaError', issues: [{ path: ['servers', 0, 'port'] }] });
  });

  test('a schema may change the value', async () => {
    const codec = json(z.object({ since: z.coerce.date() }));

    expect(codec.encode({ since: new Date(0) })).toEqual(utf8('{"since":"1970-01-01T00:00:00.000Z"}'));
    expect(await codec.decode(utf8('{"since":"1970-01-01T00:00:00.000Z"}'))).toEqual({ since: new Date(0) });
  });

  test('a schema may be asynchronous', async () => {
    const isEven: StandardSchema<number> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: async (value) =>
          typeof value === 'number' && value % 2 === 0
            ? { value }
            : { issues: [{ message: 'odd', path: [{ key: 'n' }] }] },
      },
    };

    expect(await decodeAt(json(isEven), utf8('2'), '/a')).toBe(2);
    expect((await failureOf(json(isEven), utf8('3'))).message).toContain('n: odd');
  });

  test('the type of the value is that of the schema', () => {
    const codec = json(z.object({ port: z.coerce.number() }));

    expectTypeOf(codec).toEqualTypeOf<Codec<{ port: number }>>();
    expectTypeOf<CodecValue<typeof codec>>().toEqualTypeOf<{ port: number }>();
    expectTypeOf(json()).toEqualTypeOf<Codec<unknown>>();
    expectTypeOf(gzip(json<string[]>())).toEqualTypeOf<Codec<string[]>>();
    expectTypeOf(gzip()).toEqualTypeOf<Codec<Uint8Array>>();
  });
});

describe('gzip', () => {
  /** `printf hello | gzip -n` */
  const HELLO = Buffer.from('1f8b0800000000000003cb48cdc9c9070086a6103605000000', 'hex');

  test('the output of the gzip command is read', async () => {
    expect(await gzip(text).decode(HELLO)).toBe('hello');
  });

  test('compressed data begins with the gzip header, and is read again', async () => {
    const packed = gzip(text, { level: 9 }).encode('x'.repeat(100_000));

    expect([...(packed ?? []).slice(0, 3)]).toEqual([0x1f, 0x8b, 8]);
    expect(packed?.length).toBeLessThan(1000);
    expect(await gzip(text).decode(packed)).toBe('x'.repeat(100_000));
  });

  test('data that was written before compression was enabled is read unchanged', async () => {
    expect(await gzip(text).decode(utf8('old'))).toBe('old');
    // The third byte alone is that of the method.
    expect(await gzip().decode(Uint8Array.of(1, 2, 8, 4))).toEqual(Uint8Array.of(1, 2, 8, 4));
    expect(await gzip().decode(new Uint8Array(20).fill(8))).toEqual(new Uint8Array(20).fill(8));
    expect(await gzip(text).decode(null)).toBe('');
    expect(await gzip(text).decode(new Uint8Array(0))).toBe('');
  });

  test('null stays null', () => {
    expect(gzip(nullableBytes).encode(null)).toBeNull();
  });

  test('larger data is decompressed in the background', async () => {
    const large = Array.from({ length: 20_000 }, (_, i) => (i * 2_654_435_761) % 1_000_003);
    const packed = gzipSync(JSON.stringify(large));

    const unpacked = gzip(json<number[]>()).decode(packed);

    expect(packed.length).toBeGreaterThan(4096);
    expect(unpacked).toBeInstanceOf(Promise);
    expect(await unpacked).toEqual(large);
  });

  test.each([
    ['at once', 1_000_000],
    ['in the background', 10_000_000],
  ])('data that unpacks to more than is believed is refused: %s', async (_name, length) => {
    const bomb = gzipSync(new Uint8Array(length));
    expect((await failureOf(gzip(bytes, { unpackedBytesMax: length - 1 }), bomb)).cause).toMatchObject({
      code: 'ERR_BUFFER_TOO_LARGE',
    });
    expect((await gzip(bytes, { unpackedBytesMax: length }).decode(bomb)).length).toBe(length);
  });

  test('damaged compressed data is refused', async () => {
    const damaged = Buffer.from(HELLO);
    damaged[12] = 0xff;
    expect(await failureOf(gzip(text), damaged)).toBeInstanceOf(DecodeError);
  });
});

function utf8(value: string): Uint8Array {
  return Uint8Array.from(Buffer.from(value));
}

async function failureOf<T>(codec: Codec<T>, data: Uint8Array | null): Promise<DecodeError> {
  try {
    await decodeAt(codec, data, '/a');
  } catch (error) {
    return error as DecodeError;
  }
  throw new Error('it was decoded');
}
