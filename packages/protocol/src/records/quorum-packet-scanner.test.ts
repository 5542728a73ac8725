import { describe, expect, test } from 'vitest';
import { bytesOf } from '../testing/byte-list.ts';
import { QuorumPacketScanner } from './quorum-packet-scanner.ts';

const ACK = bytesOf((b) => b.int(3).long(5).buffer(null).int(-1));
const REQUEST = bytesOf((b) =>
  b.int(1).long(-1).buffer([1, 2, 3]).int(2).text('digest').text('ann:x').text(null).text(''),
);

test('a packet ends behind the identities of its client', () => {
  const scanner = new QuorumPacketScanner();
  const bytes = bytesOf((b) => b.raw([9]).raw(REQUEST).raw(ACK).raw(ACK.subarray(0, 19)));
  expect(scanner.scan(bytes, 1, bytes.length)).toBe(REQUEST.length);
  expect(scanner.scan(bytes, 1 + REQUEST.length, bytes.length)).toBe(ACK.length);
  expect(scanner.scan(bytes, 1 + REQUEST.length + ACK.length, bytes.length)).toBe(0);
});

test('a packet that arrives byte by byte is complete with its last byte, even if it is moved meanwhile', () => {
  const scanner = new QuorumPacketScanner();
  for (let there = 0; there < REQUEST.length; there++) {
    const moved = bytesOf((b) => b.raw(new Uint8Array(there)).raw(REQUEST.subarray(0, there)));
    expect(scanner.scan(moved, there, moved.length)).toBe(0);
  }
  expect(scanner.scan(REQUEST, 0, REQUEST.length)).toBe(REQUEST.length);
});

test('a null vector, an empty one and any other negative count are the same', () => {
  for (const count of [-1, 0, -2, -(2 ** 31)]) {
    const bytes = bytesOf((b) => b.int(3).long(5).buffer([]).int(count));
    expect(new QuorumPacketScanner().scan(bytes, 0, bytes.length)).toBe(20);
  }
});

describe('an invalid packet', () => {
  test('has data or texts longer than the field limit, detected before they arrive', () => {
    const scan = (bytes: Uint8Array) => new QuorumPacketScanner(100).scan(bytes, 0, bytes.length);
    for (const length of [101, 2 ** 31 - 1, -2, -(2 ** 31)]) {
      expect(scan(bytesOf((b) => b.int(2).long(5).int(length)))).toBe(-1);
      expect(scan(bytesOf((b) => b.int(1).long(5).buffer(null).int(1).int(length)))).toBe(-1);
    }
    expect(scan(bytesOf((b) => b.int(2).long(5).int(100)))).toBe(0);
  });

  test('claims more texts than a packet may hold, detected at once', () => {
    const scan = (count: number) => {
      const bytes = bytesOf((b) => b.int(1).long(5).buffer(null).int(count));
      return new QuorumPacketScanner(100).scan(bytes, 0, bytes.length);
    };
    expect(scan(2 ** 31 - 1)).toBe(-1);
    expect(scan(26)).toBe(-1);
    expect(scan(25)).toBe(0);
  });

  test('has texts that exceed what a packet may hold', () => {
    const bytes = bytesOf((b) => {
      b.int(1).long(5).buffer(null).int(3);
      for (let i = 0; i < 6; i++) b.text('x'.repeat(60));
      return b;
    });
    expect(new QuorumPacketScanner(100).scan(bytes, 0, bytes.length)).toBe(-1);
    expect(new QuorumPacketScanner(200).scan(bytes, 0, bytes.length)).toBe(bytes.length);
  });
});

test('a packet of a hundred thousand texts that arrives in small pieces is scanned once', () => {
  const texts = 100_000;
  const bytes = bytesOf((b) =>
    b
      .int(1)
      .long(5)
      .buffer(null)
      .int(texts / 2)
      .raw(new Uint8Array(texts * 4)),
  );
  const scanner = new QuorumPacketScanner();
  let found = 0;
  for (let end = 0; end <= bytes.length; end += 4) found += scanner.scan(bytes, 0, end);
  expect(found).toBe(bytes.length);
});
