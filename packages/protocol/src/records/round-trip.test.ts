import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { anyRequest, anyTreeDigest, anyTxn, anyTxnHeader } from '../testing/arbitraries.ts';
import { readRequest, writeRequest } from './requests.ts';
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
