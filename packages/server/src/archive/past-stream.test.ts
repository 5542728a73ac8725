import type { ByteStream } from '@meerkat/core';
import { expect, test } from 'vitest';
import { StreamPair } from './past-stream.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A stream whose server end pauses after each of these texts. */
async function open(pauses: readonly string[]) {
  const received: string[] = [];
  let server: ByteStream | null = null;
  const core = {
    onStreamOpened(stream: ByteStream) {
      server = stream;
      return {
        onBytes(bytes: Uint8Array) {
          const text = Buffer.from(bytes).toString();
          received.push(text);
          if (pauses.includes(text)) stream.pause();
        },
        onDrain() {},
        onClosed() {},
      };
    },
  };
  const events = { onOpen() {}, onBytes() {}, onClosed() {} };
  const client = new StreamPair({ run: (event) => event() }, core, events);
  await nextTurn();
  const write = (...texts: readonly string[]): void => {
    for (const text of texts) client.write(Buffer.from(text));
  };
  return { received, write, server: server as unknown as ByteStream };
}

test('what is written when the server reads again stays behind what it has not read yet', async () => {
  const { received, write, server } = await open(['b', 'd']);
  write('a', 'b', 'c', 'd');
  expect(received).toEqual(['a', 'b']);
  server.resume();
  write('e');
  await nextTurn();
  expect(received).toEqual(['a', 'b', 'c', 'd']);
  server.resume();
  server.pause();
  write('f');
  await nextTurn();
  expect(received).toHaveLength(4);
  server.resume();
  await nextTurn();
  write('g');
  expect(received).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
});
