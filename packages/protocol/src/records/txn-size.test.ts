import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { textBytesAtMost } from '../jute/text-bytes.ts';
import { JuteWriter } from '../jute/writer.ts';
import { anyTxn } from '../testing/arbitraries.ts';
import type { Zxid } from '../zxid.ts';
import { DIGEST_VERSION, type Txn, writeTxn, writeTxnDigest } from './txn.ts';
import {
  FRAME_BYTES_LIMIT,
  isTxnWithin,
  RECORD_BYTES_MAX,
  TXN_FRAME_BYTES,
  txnBytesMaxOf,
  txnRecordBytes,
} from './txn-size.ts';

const HEADER = { sessionId: 1n, cxid: 2, zxid: 3 as Zxid, time: 4 };

function writtenBytes(txn: Txn): number {
  const writer = new JuteWriter(1);
  writeTxn(writer, HEADER, txn);
  writeTxnDigest(writer, DIGEST_VERSION, -1n);
  return writer.position;
}

test('the computed length of every txn is right', () => {
  fc.assert(
    fc.property(anyTxn, (txn) => {
      const bytes = writtenBytes(txn);
      expect(TXN_FRAME_BYTES + txnRecordBytes(txn)).toBe(bytes);
      expect(TXN_FRAME_BYTES + txnRecordBytes(txn, textBytesAtMost)).toBeGreaterThanOrEqual(bytes);
      expect(isTxnWithin(txn, bytes)).toBe(true);
      expect(isTxnWithin(txn, bytes - 1)).toBe(false);
    }),
    { numRuns: 2000 },
  );
});

describe('the largest txn', () => {
  test('is by default the limit of an Apache server that reads its log: 2097150 bytes', () => {
    // Its 3.8.0 opens a log with an entry of this length, and ends at "Unreasonable length = 2097151".
    expect(txnBytesMaxOf(0xfffff, null)).toBe(2_097_150);
  });

  test('follows extrasize, which is 1024 at least', () => {
    expect(txnBytesMaxOf(0xfffff, 4096)).toBe(0xfffff + 4096);
    expect(txnBytesMaxOf(0xfffff, 0)).toBe(0xfffff + 1024);
    expect(txnBytesMaxOf(10, null)).toBe(1034);
  });

  test('is never longer than every reader accepts', () => {
    expect(txnBytesMaxOf(FRAME_BYTES_LIMIT, null)).toBe(RECORD_BYTES_MAX);
    expect(txnBytesMaxOf(FRAME_BYTES_LIMIT, FRAME_BYTES_LIMIT)).toBe(RECORD_BYTES_MAX);
  });
});
