import { gunzipSync, gzipSync } from 'node:zlib';
import type { ByteTransform } from '@meerkat/core';
import { expect, test } from 'vitest';
import { SnappyPacker, SnappyUnpacker } from '../archive/snappy.ts';
import { NODE_CLOCK } from './clock.ts';
import { NodeSnapshotCodec } from './snapshot-codec.ts';
import { Turn } from './turn.ts';

const turn = new Turn(NODE_CLOCK, (fault) => expect.fail(String(fault)));
turn.start(
  { onTurnEnd() {}, onTick() {}, nextDeadlineMs: () => Number.POSITIVE_INFINITY },
  { startEffects: () => false },
);
const codec = new NodeSnapshotCodec(turn);

/** The output of a transform for these pieces. */
async function through(transform: ByteTransform, pieces: readonly Uint8Array[]): Promise<Buffer> {
  const out: Uint8Array[] = [];
  for (const [i, piece] of pieces.entries()) {
    // The transform owns the piece until it calls back; it may be reused afterwards.
    const own = new Uint8Array(piece);
    const bytes = await new Promise<Uint8Array>((resolve, reject) => {
      let isReturned = false;
      transform.push(own, i === pieces.length - 1, (error, result) => {
        expect(isReturned, 'an event of its own').toBe(true);
        own.fill(0xee);
        if (error === null) resolve(result);
        else reject(error);
      });
      isReturned = true;
    });
    out.push(bytes);
  }
  return Buffer.concat(out);
}

function cut(bytes: Uint8Array, length: number): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += length) pieces.push(bytes.subarray(at, at + length));
  return pieces;
}

/** Some of it repeats, some does not. */
const SAMPLE: Buffer = Buffer.alloc(300_000);
for (let i = 0, state = 1; i < SAMPLE.length; i++) {
  state = Math.imul(state, 1103515245) + 12345;
  SAMPLE[i] = i % 1000 < 600 ? i % 17 : state >>> 16;
}

test('gzip: what is compressed is what zlib reads, what zlib compresses is read, in pieces of any length', async () => {
  for (const length of [1000, 70_000, SAMPLE.length]) {
    expect(gunzipSync(await through(codec.compress('gz'), cut(SAMPLE, length))).equals(SAMPLE)).toBe(true);
    expect((await through(codec.decompress('gz'), cut(gzipSync(SAMPLE), length))).equals(SAMPLE)).toBe(true);
  }
});

test('snappy: what is compressed is read, in pieces of any length', async () => {
  const whole = await through(codec.compress('snappy'), [SAMPLE]);
  expect(whole.length).toBeLessThan(SAMPLE.length * 0.75);
  for (const length of [1000, 70_000]) {
    expect((await through(codec.compress('snappy'), cut(SAMPLE, length))).equals(whole)).toBe(true);
    expect((await through(codec.decompress('snappy'), cut(whole, length))).equals(SAMPLE)).toBe(true);
  }
});

test('a stream that is truncated, has bytes after its end, or is not compressed is refused', async () => {
  const gz = gzipSync(SAMPLE);
  await expect(through(codec.decompress('gz'), [gz.subarray(0, -1)])).rejects.toThrow('unexpected end of file');
  await expect(through(codec.decompress('gz'), [])).resolves.toHaveLength(0);
  await expect(through(codec.decompress('gz'), [SAMPLE])).rejects.toThrow('incorrect header check');
  await expect(through(codec.decompress('gz'), [Buffer.concat([gz, SAMPLE]), SAMPLE])).rejects.toThrow();
  const snappy = new SnappyPacker().take(SAMPLE, true);
  await expect(through(codec.decompress('snappy'), [snappy.subarray(0, -1)])).rejects.toThrow('it is cut short');
  await expect(through(codec.decompress('snappy'), [SAMPLE])).rejects.toThrow('it is no stream of snappy');
  expect(() => new SnappyUnpacker().end()).toThrow('it is cut short');
});

test.each(['gz', 'snappy'] as const)('%s: after close nothing is told', async (method) => {
  const transform = codec.compress(method);
  let callbacks = 0;
  transform.push(SAMPLE, true, () => callbacks++);
  transform.close();
  await through(codec.compress(method), [SAMPLE]);
  await turn.ended();
  expect(callbacks).toBe(0);
});
