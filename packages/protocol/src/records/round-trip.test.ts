import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { anyRequest, anyTreeDigest, anyTxn, anyTxnHeader } from '../testing/arbitraries.ts';
import { isClientOp, readRequest, writeRequest } from './requests.ts';
import { DIGEST_VERSION, readTxnEntry, writeTxn, writeTxnDigest } from './txn.ts';

const RUNS = { numRuns: 2000 };

test('every request that is written is read back as it was', () => {
  fc.assert(
    fc.property(anyRequest, (request) => {
      const writer = new JuteWriter(1);
      writeRequest(writer, request);
      const reader = new JuteReader(writer.toBytes());
      expect(readRequest(request.op, reader)).toEqual(request);
      expect(reader.remaining).toBe(0);
    }),
    RUNS,
  );
});

test('the arbitrary requests are of every operation that a client may send', () => {
  const ops = new Set<number>(fc.sample(anyRequest, { numRuns: 2000, seed: 7 }).map(({ op }) => op));
  const missing = Object.entries(OpCode).filter(([, op]) => isClientOp(op) && !ops.has(op));
  expect(missing).toEqual([]);
});

test('every txn that is written is read back as it was', () => {
  fc.assert(
    fc.property(anyTxnHeader, anyTxn, anyTreeDigest, (header, txn, treeDigest) => {
      const writer = new JuteWriter(1);
      writeTxn(writer, header, txn);
      if (treeDigest !== null) writeTxnDigest(writer, DIGEST_VERSION, treeDigest);
      const reader = new JuteReader(writer.toBytes());
      const digest = treeDigest === null ? null : { version: DIGEST_VERSION, treeDigest };
      expect(readTxnEntry(reader)).toEqual({ header, txn, digest });
      expect(reader.remaining).toBe(0);
    }),
    RUNS,
  );
});
