import { expect, test } from 'vitest';
import type { ByteStream } from '../base/ports.ts';
import { ConnectionOutput } from './connection-output.ts';
import { OutputPool } from './output-pool.ts';

/** A stream that holds what is written until `take`. */
class SlowStream implements ByteStream {
  readonly remote = { ip: new Uint8Array(4), host: '0.0.0.0', port: 1 };
  readonly held: Uint8Array[] = [];
  get queuedBytes(): number {
    return this.held.reduce((sum, { length }) => sum + length, 0);
  }
  write(bytes: Uint8Array): void {
    this.held.push(bytes);
  }
  take(): void {
    this.held.length = 0;
  }
  end(): void {}
  destroy(): void {}
  pause(): void {}
  resume(): void {}
}

test('buffers that a slow stream holds are not written again before it has passed everything on, and then they are', () => {
  const stream = new SlowStream();
  const output = new ConnectionOutput(stream, new OutputPool());
  const write = (value: number): ArrayBufferLike => {
    const writer = output.writer();
    writer.raw(new Uint8Array(100).fill(value));
    output.flush();
    return writer.bytes.buffer;
  };
  const [first, second] = [write(1), write(2)];
  expect(second).not.toBe(first);
  expect(stream.held.map((bytes) => bytes[99])).toEqual([1, 2]);

  stream.take();
  output.onDrain();
  expect([write(3), write(4)].filter((buffer) => buffer === first || buffer === second)).toHaveLength(2);
  expect(stream.held.map((bytes) => bytes[99])).toEqual([3, 4]);
});
