import { ErrorCode, JuteChunks, JuteWriter } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import type { ByteStream } from '../base/ports.ts';
import { ConnectionOutput } from './connection-output.ts';
import { OutputPool } from './output-pool.ts';

/** A stream that holds written data until `take`. */
class SlowStream implements ByteStream {
  readonly remote = { ip: new Uint8Array(4), host: '0.0.0.0', port: 1 };
  readonly held: Uint8Array[] = [];
  isQuick = false;
  get queuedBytes(): number {
    return this.held.reduce((sum, { length }) => sum + length, 0);
  }
  write(bytes: Uint8Array): void {
    if (!this.isQuick) this.held.push(bytes);
  }
  take(): void {
    this.held.length = 0;
  }
  end(): void {}
  destroy(): void {}
  pause(): void {}
  resume(): void {}
}

test('buffers held by a slow stream are reused only once it has passed everything on', () => {
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

test('a buffer is returned to the pool once: at once by a quick stream, and when a slow one drains', () => {
  const stream = new SlowStream();
  const pool = new OutputPool();
  const output = new ConnectionOutput(stream, pool);
  const write = (): unknown => {
    const writer = output.writer();
    writer.raw(new Uint8Array(10));
    output.flush();
    return writer;
  };
  stream.isQuick = true;
  const buffer = write();
  expect(output.isBackedUp).toBe(false);
  expect(write()).toBe(buffer);
  stream.isQuick = false;
  expect(write()).toBe(buffer);
  expect(output.isBackedUp).toBe(true);
  stream.take();
  for (let i = 0; i < 2; i++) output.onDrain();
  expect(output.isBackedUp).toBe(false);
  const taken = [pool.take(), pool.take()];
  expect([taken[0] === buffer, taken[1] === buffer]).toEqual([true, false]);
});

test('pieces of a long reply are released once a slow stream has passed everything on; of others, at once', () => {
  const stream = new SlowStream();
  const output = new ConnectionOutput(stream, new OutputPool());
  const given: JuteWriter[] = [];
  const source = {
    take: (bytes: number) => new JuteWriter(bytes),
    give: (piece: JuteWriter) => void given.push(piece),
  };
  const reply = (bytes: number) => {
    const record = new JuteChunks(source);
    record.writerFor(bytes).raw(new Uint8Array(bytes).fill(7));
    output.beginReply(1, 2, ErrorCode.ok);
    output.endReplyWith(record);
  };
  reply(0x8000);
  expect(given).toHaveLength(1);
  reply(1_000_000);
  reply(2_000_000);
  output.flush();
  expect(given).toHaveLength(1);
  expect(stream.held.map((bytes) => bytes.at(-1))).toEqual([expect.anything(), 7, expect.anything(), 7]);
  stream.take();
  output.onDrain();
  expect(given).toHaveLength(3);
  stream.isQuick = true;
  reply(1_000_000);
  expect(given).toHaveLength(4);
  output.onDrain();
  expect(new Set(given).size).toBe(4);
});

test('what a flush returns are all bytes since the last one, including long replies, which have left before it', () => {
  const stream = new SlowStream();
  const output = new ConnectionOutput(stream, new OutputPool());
  const reply = (bytes: number): void => {
    const record = new JuteChunks({ take: (size) => new JuteWriter(size), give() {} });
    record.writerFor(bytes).raw(new Uint8Array(bytes));
    output.beginReply(1, 2, ErrorCode.ok);
    output.endReplyWith(record);
  };
  // In each turn, lengths of the replies; each has a length field and a header, 20 bytes together.
  const turns: readonly (readonly [lengths: readonly number[], bytes: number])[] = [
    [[10], 30],
    [[100_000], 100_020],
    [[100_000, 10], 100_050],
    [[10, 100_000, 200_000, 10], 300_100],
    [[10], 30],
    [[], 0],
  ];
  for (const [lengths, bytes] of turns) {
    const before = stream.queuedBytes;
    for (const length of lengths) reply(length);
    expect([output.flush(), stream.queuedBytes - before]).toEqual([bytes, bytes]);
  }
});

test('only events that a slow client leaves unread count as too many, however many it has taken', () => {
  const stream = new SlowStream();
  const output = new ConnectionOutput(stream, new OutputPool());
  const event = new Uint8Array(1024 * 1024);
  const writeEvents = (count: number): void => {
    for (let i = 0; i < count; i++) {
      output.writeEvent(event);
      output.flush();
    }
  };
  stream.isQuick = true;
  writeEvents(20);
  expect(output.hasTooManyEvents).toBe(false);
  stream.isQuick = false;
  writeEvents(16);
  expect(output.hasTooManyEvents).toBe(false);
  writeEvents(1);
  expect(output.hasTooManyEvents).toBe(true);
  stream.take();
  output.onDrain();
  expect(output.hasTooManyEvents).toBe(false);
});
