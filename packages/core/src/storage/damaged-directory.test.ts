/** Any file of a directory, damaged in any way: a start recovers the whole history, or it is refused. */
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import {
  copyDisk,
  Dice,
  databaseAt,
  describeDatabase,
  grownDirectory,
  StorageHost,
  TEST_DIRECTORY,
  TEST_ENSEMBLE,
} from '../testing/storage-host.ts';
import type { MemoryDisk } from './memory-disk.ts';

/** For each of six directories; 300 were run once. */
const ROUNDS = 40;

describe('a directory with one damaged file', () => {
  it.each([
    ['of a standalone server', null],
    ['of an ensemble', TEST_ENSEMBLE],
  ])('%s starts with all that was acknowledged, or does not start', (_, ensemble) => {
    const options: Partial<CoreOptions> = { ensemble, preallocateBytes: 4096, snapCount: 12, logBytesMax: 2048 };
    let starts = 0;
    for (let seed = 1; seed <= 6; seed++) {
      const { disk, history } = grownDirectory(new Dice(seed), options);
      const last = history.at(-1)!.header.zxid;
      const whole = new StorageHost(copyDisk(disk), options).recover();
      const expected = describeDatabase(databaseAt(history, last, whole.options));
      expect(describeDatabase(whole.database!)).toBe(expected);
      const dice = new Dice(seed + 100);
      for (let round = 0; round < ROUNDS; round++) {
        const damaged = copyDisk(disk);
        const what = damage(damaged, dice);
        const host = new StorageHost(damaged, options).recover();
        if (host.failure !== null) continue;
        starts++;
        expect(host.database!.lastZxid, `seed ${seed}, round ${round}: ${what}`).toBe(last);
        expect(describeDatabase(host.database!), `seed ${seed}, round ${round}: ${what}`).toBe(expected);
      }
    }
    expect(starts).toBeGreaterThan(100);
  });
});

/** @returns what was done to which file */
function damage(disk: MemoryDisk, dice: Dice): string {
  const names = disk.names(TEST_DIRECTORY);
  const name = names[dice.below(names.length)]!;
  const path = `${TEST_DIRECTORY}/${name}`;
  const bytes = disk.peek(path)!.slice();
  const unit = dice.below(2) === 0 ? 512 : 4096;
  const at = dice.below(Math.ceil(bytes.length / unit)) * unit;
  switch (dice.below(7)) {
    case 0:
      disk.poke(path, bytes.fill(0, at, at + unit));
      return `zeros in ${name}`;
    case 1:
      disk.poke(path, bytes.slice(0, dice.below(bytes.length + 1)));
      return `end missing of ${name}`;
    case 2:
      disk.poke(path, bytes.copyWithin(at, dice.below(Math.ceil(bytes.length / unit)) * unit, bytes.length));
      return `doubled block of ${name}`;
    case 3:
      if (bytes.length > 0) bytes[dice.below(bytes.length)]! ^= 1 << dice.below(8);
      disk.poke(path, bytes);
      return `bit of ${name}`;
    case 4:
      disk.poke(path, Uint8Array.of(...bytes, ...Array.from({ length: dice.below(600) }, () => dice.below(256))));
      return `more behind ${name}`;
    case 5:
      disk.remove(path, () => {});
      disk.deliverAll();
      return `without ${name}`;
    default:
      disk.poke(path, new Uint8Array(0));
      return `nothing in ${name}`;
  }
}
