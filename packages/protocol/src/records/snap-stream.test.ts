import { expect, test } from 'vitest';
import { JuteWriter } from '../jute/writer.ts';
import { bytesOf } from '../testing/byte-list.ts';
import { isSnapSignatureAt, SNAP_SIGNATURE_BYTES, writeSnapSignature } from './snap-stream.ts';

const SIGNATURE = bytesOf((b) => b.text('BenWasHere'));

test('the signature behind a snapshot is a text of ten letters', () => {
  const writer = new JuteWriter(1);
  writeSnapSignature(writer);
  expect(writer.toBytes()).toEqual(SIGNATURE);
  expect(SIGNATURE).toHaveLength(SNAP_SIGNATURE_BYTES);
});

test('the signature is recognized by each of its bytes, at any offset', () => {
  const bytes = bytesOf((b) => b.raw([7, 7]).raw(SIGNATURE));
  expect(isSnapSignatureAt(bytes, 2)).toBe(true);
  expect(isSnapSignatureAt(bytes, 1)).toBe(false);
  for (let i = 0; i < SNAP_SIGNATURE_BYTES; i++) {
    const changed = SIGNATURE.slice();
    changed[i]!++;
    expect(isSnapSignatureAt(changed, 0)).toBe(false);
  }
  expect(isSnapSignatureAt(SIGNATURE.subarray(0, 13), 0)).toBe(false);
});
