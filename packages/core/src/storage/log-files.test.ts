import type { Zxid } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { LogFiles } from './log-files.ts';

test('a file that a crash left without entries is listed once when it is created again', () => {
  const files = new LogFiles();
  files.reset([
    { name: 'log.1', zxid: 1 as Zxid, size: 100 },
    { name: 'log.5', zxid: 5 as Zxid, size: 16 },
  ]);
  files.onStarted(5 as Zxid, 16);
  files.onWritten(80, 5 as Zxid, 16);
  expect(files.files).toMatchObject([
    { name: 'log.1', size: 100 },
    { name: 'log.5', size: 80 },
  ]);
  expect(files.bytesFrom(1 as Zxid)).toBe(180);
});

test('places are known for entries that are read again after a reset', () => {
  const files = new LogFiles();
  for (let round = 0; round < 2; round++) {
    files.reset([{ name: 'log.1', zxid: 1 as Zxid, size: 100 }]);
    files.onEntryRead('log.1', 1 as Zxid, 16);
    expect(files.placeBefore(1 as Zxid, 1, 1)).toMatchObject({ zxid: 1, position: 16, file: { name: 'log.1' } });
  }
});
