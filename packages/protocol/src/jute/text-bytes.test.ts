import fc from 'fast-check';
import { expect, test } from 'vitest';
import { textBytes, textBytesAtMost } from './text-bytes.ts';
import { JuteWriter } from './writer.ts';

/** Any UTF-16 units, halves of pairs among them. */
const units = fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes));

test('the length of every text is right, even if UTF-8 cannot represent it', () => {
  fc.assert(
    fc.property(fc.oneof(units, fc.string({ unit: 'binary' })), (text) => {
      const writer = new JuteWriter(1);
      writer.ustring(text);
      expect(textBytes(text)).toBe(writer.position - 4);
      expect(textBytesAtMost(text)).toBeGreaterThanOrEqual(textBytes(text));
    }),
  );
});
