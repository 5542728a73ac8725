import { expect, it } from 'vitest';
import { DiskError, type DiskFile } from '../base/ports.ts';
import { LogSlices } from './log-slices.ts';

const MIB = 1024 * 1024;

type Read = [position: number, length: number, done: (error: DiskError | null, bytes: Uint8Array) => void];

/** A file whose reads are completed manually. */
class HeldFile {
  readonly reads: Read[] = [];
  readonly bytes: Uint8Array;
  isClosed = false;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  read(...[position, length, done]: Read): void {
    this.reads.push([position, length, done]);
  }

  close(): void {
    this.isClosed = true;
  }

  answer(): void {
    const [position, length, done] = this.reads.shift()!;
    done(null, this.bytes.subarray(position, position + length));
  }

  fail(): void {
    const [, , done] = this.reads.shift()!;
    done(new DiskError('read', 'log.1', 'EIO'), new Uint8Array(0));
  }
}

function open(bytes: Uint8Array, startAt = 0): { file: HeldFile; slices: LogSlices; events: string[] } {
  const file = new HeldFile(bytes);
  const events: string[] = [];
  const slices = new LogSlices({
    onSlice: (position, { length }, isMore) => events.push(`${position} +${length}${isMore ? '' : ', the last'}`),
    onZeros: () => events.push('zeros'),
    onReadFailed: ({ message }) => events.push(message),
  });
  slices.begin(file as unknown as DiskFile, bytes.length, startAt);
  return { file, slices, events };
}

it('requests two slices in advance, and the next when one has been consumed', () => {
  const { file, slices, events } = open(new Uint8Array(MIB));
  expect(file.reads).toHaveLength(2);
  file.answer();
  expect([events, file.reads.length]).toEqual([['0 +262144'], 1]);
  slices.readAhead();
  expect(file.reads).toHaveLength(2);
});

it('reports an empty file with a slice without bytes', () => {
  const { file, events } = open(new Uint8Array(0));
  file.answer();
  expect(events).toEqual(['0 +0, the last']);
});

it.each([
  { rest: 'zeros', at: null, events: ['zeros'], reads: 0 },
  { rest: 'a byte that a probe meets', at: 2.5 * MIB + 5, events: [], reads: 1 },
])('probes a few bytes of each part of the rest, and reads all of it only if one is not zero: $rest', (expected) => {
  const bytes = new Uint8Array(4 * MIB);
  if (expected.at !== null) bytes[expected.at] = 1;
  const { file, slices, events } = open(bytes, MIB);
  while (file.reads.length > 0) file.answer();
  events.length = 0;
  slices.readRest(true);
  const probes = file.reads.length;
  for (let i = 0; i < probes; i++) file.answer();
  expect([events, file.reads.length]).toEqual([expected.events, expected.reads]);
});

it('reports a probe that fails, and nothing else', () => {
  const { file, slices, events } = open(new Uint8Array(4 * MIB), MIB);
  while (file.reads.length > 0) file.answer();
  events.length = 0;
  slices.readRest(true);
  while (file.reads.length > 1) file.answer();
  file.fail();
  expect([events, file.reads]).toEqual([['cannot read log.1: EIO'], []]);
});

it.each(['release', 'close'] as const)('reports nothing about a file after %s', (end) => {
  const { file, slices, events } = open(new Uint8Array(MIB));
  slices[end]();
  file.answer();
  expect([events, file.isClosed]).toEqual([[], end === 'close']);
});
