import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Paint } from '../output/paint.ts';
import { diffValues } from './value-diff.ts';

const PLAIN = new Paint(false);

function diff(a: string | Uint8Array, b: string | Uint8Array): string | null {
  return diffValues(Buffer.from(a), Buffer.from(b), PLAIN);
}

test('texts are compared by lines, with what stands around a change', () => {
  expect(diff('one', 'one')).toBe(null);
  expect(diff('on', 'off')).toBe('-on\n+off');
  expect(diff('', 'on')).toBe('+on');
  expect(diff('on', '')).toBe('-on');
  expect(diff('a\nb\nc\n', 'a\nB\nc\n')).toBe(' a\n-b\n+B\n c');
});

test('changes that are far apart have their line numbers', () => {
  const left = Array.from({ length: 30 }, (_, i) => `line ${i}`);
  const right = left.with(0, 'first').with(29, 'last');
  expect(diff(left.join('\n'), right.join('\n'))).toBe(
    [
      ...['@@ -1,4 +1,4 @@', '-line 0', '+first', ' line 1', ' line 2', ' line 3'],
      ...['@@ -27,4 +27,4 @@', ' line 26', ' line 27', ' line 28', '-line 29', '+last'],
    ].join('\n'),
  );
});

test('a line feed at the end is reported when it is the difference', () => {
  expect(diff('a', 'a\n')).toBe('-a\n\\ No newline at end of file\n+a');
});

test('two JSON values are compared field by field, regardless of order and layout', () => {
  expect(diff('{"b":1,"a":{"y":2,"x":1}}', '{"a":{"x":1,"y":3},"b":1}')).toBe(
    ' {\n   "a": {\n     "x": 1,\n-    "y": 2\n+    "y": 3\n   },\n   "b": 1\n }',
  );
  expect(diff('{"a":1}', '{ "a": 1 }')).toBe('the same JSON, with other white space');
  // Equal as JavaScript numbers, but different as text.
  expect(diff('{"a":9007199254740993}', '{"a":9007199254740992}')).toBe(
    '-{"a":9007199254740993}\n+{"a":9007199254740992}',
  );
});

test('packed values are compared unpacked', () => {
  expect(diff(gzipSync('on'), gzipSync('off'))).toBe('unpacked\n-on\n+off');
  expect(diff(gzipSync('on'.repeat(99), { level: 1 }), gzipSync('on'.repeat(99), { level: 0 }))).toBe(
    'the same once it is unpacked: packed in another way',
  );
});

test('of other bytes the sizes and the first difference are told', () => {
  expect(diff(Uint8Array.of(0, 1, 2), Uint8Array.of(0, 1, 255, 4))).toBe(
    '3 B → 4 B, the first difference at byte 2: 0x02 → 0xff',
  );
  expect(diff(Uint8Array.of(0), Uint8Array.of(0, 7))).toBe('1 B → 2 B, the first difference at byte 1: the end → 0x07');
});

test('the diff of texts that have nothing in common is bounded', () => {
  const lines = (word: string) => Array.from({ length: 20_000 }, (_, i) => `${word} ${i}`).join('\n');
  expect(diff(lines('left'), lines('right'))).toMatch(/^\d+ KiB → \d+ KiB, the first difference at byte 0/);
});

test('a difference is told exactly when there is one', () => {
  const value = fc.oneof(
    fc.uint8Array(),
    fc.string().map((text) => Buffer.from(text)),
    fc.json().map((text) => Buffer.from(text)),
    fc.string().map((text) => gzipSync(text)),
  );
  fc.assert(
    fc.property(value, value, (a, b) => {
      const shown = diffValues(a, b, PLAIN);
      expect(shown === null).toBe(Buffer.compare(a, b) === 0);
      expect(shown).not.toBe('');
    }),
  );
});
