/**
 * Every interleaving of the steps of a writer and a reader: two virtual threads, each a generator that stops before
 * every access to the shared memory. States that were seen before are not explored again.
 */
import { describe, expect, test } from 'vitest';
import { makeRing, RingReader, RingWriter, type Step } from './byte-ring.ts';

/** Lengths of the records that are put before each `publish`. */
type Batches = readonly (readonly number[])[];

interface Situation {
  /** The thread's next step, 'blocked' while it waits to be woken, 'done' at its end. */
  readonly writer: () => string;
  readonly reader: () => string;
  readonly state: () => string;
  readonly step: (thread: Thread) => void;
}

type Thread = 'writer' | 'reader';
const THREADS: readonly Thread[] = ['writer', 'reader'];

function* stepping<Side>(side: Side, steps: readonly Step<Side>[], name: string): Generator<string> {
  for (const [i, step] of steps.entries()) {
    yield `${name} ${i}`;
    if (!step(side)) return;
  }
}

/** A record's bytes: its number, repeated. */
const recordOf = (number: number, length: number): Uint8Array => new Uint8Array(length).fill(number);

function begin(capacity: number, batches: Batches): Situation {
  const ring = makeRing(capacity);
  const writer = new RingWriter(ring);
  const reader = new RingReader(ring);
  const sent = batches.flat();
  const received: string[] = [];
  const wakes = { reader: 0, writer: 0 };
  const sleeps = { reader: 0, writer: 0 };
  const isWoken = { reader: false, writer: false };
  const wake = (who: Thread): void => {
    wakes[who]++;
    if (wakes[who] > sleeps[who]) throw new Error(`the ${who} is woken twice for one sleep`);
    isWoken[who] = true;
  };
  function* sleeping(who: Thread): Generator<string> {
    while (!isWoken[who]) yield 'blocked';
    isWoken[who] = false;
  }

  function* write(): Generator<string> {
    let number = 0;
    for (const batch of batches) {
      for (const length of batch) {
        number++;
        for (;;) {
          yield `has room for ${number}`;
          if (writer.hasRoom(length)) break;
          yield* publish();
          sleeps.writer++;
          yield* stepping(writer, RingWriter.awaitRoomSteps, 'await room');
          if (writer.mustWait) yield* sleeping('writer');
        }
        yield `put ${number}`;
        writer.put(1, number, recordOf(number, length));
      }
      yield* publish();
    }
  }
  function* publish(): Generator<string> {
    if (writer.unpublishedBytes === 0) return;
    yield* stepping(writer, RingWriter.publishSteps, 'publish');
    if (writer.wakes) wake('reader');
  }
  function* read(): Generator<string> {
    while (received.length < sent.length) {
      yield* stepping(reader, RingReader.takeSteps, 'take');
      if (reader.wakes) wake('writer');
      let count = 0;
      while (reader.next()) {
        count++;
        const number = received.length + 1;
        received.push(`${reader.connection}`);
        const bytes = reader.bytes().join();
        if (reader.connection !== number) throw new Error(`record ${reader.connection} came in the place of ${number}`);
        if (bytes !== recordOf(number, sent[number - 1]!).join())
          throw new Error(`record ${number} has bytes ${bytes}`);
      }
      if (count > 0 || received.length === sent.length) continue;
      sleeps.reader++;
      yield* stepping(reader, RingReader.sleepSteps, 'sleep');
      if (reader.isAsleep) yield* sleeping('reader');
    }
  }

  const threads = { writer: write(), reader: read() };
  const next: Record<Thread, string> = { writer: '', reader: '' };
  const step = (thread: Thread): void => {
    const { done, value } = threads[thread].next();
    next[thread] = done === true ? 'done' : value;
  };
  for (const thread of THREADS) step(thread);
  const label = (thread: Thread): string =>
    next[thread] === 'blocked' && isWoken[thread] ? 'awake again' : next[thread];
  return {
    writer: () => label('writer'),
    reader: () => label('reader'),
    step,
    state: () =>
      [
        new Uint8Array(ring).join(''),
        writer.state,
        reader.state,
        label('writer'),
        label('reader'),
        received.length,
        JSON.stringify([isWoken, wakes.reader - sleeps.reader, wakes.writer - sleeps.writer]),
      ].join('|'),
  };
}

/** @returns number of distinct states */
function exploreAll(capacity: number, batches: Batches): number {
  const seen = new Set<string>();
  const open: Thread[][] = [[]];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const situation = begin(capacity, batches);
    for (const thread of path) situation.step(thread);
    // Continue from here to a known state; alternatives on the way are kept for later.
    for (let state = situation.state(); !seen.has(state); state = situation.state()) {
      seen.add(state);
      const able = THREADS.filter((thread) => !['done', 'blocked'].includes(situation[thread]()));
      const [first, second] = able;
      if (first === undefined) {
        const ends = `writer ${situation.writer()}, reader ${situation.reader()}`;
        if (ends !== 'writer done, reader done')
          throw new Error(`a thread is never woken (${ends}): ${path.join(' ')}`);
        break;
      }
      if (second !== undefined) open.push([...path, second]);
      path.push(first);
      situation.step(first);
    }
  }
  return seen.size;
}

describe('every interleaving of a writer and a reader', () => {
  test('delivers each record once, whole and in order, and wakes a thread that sleeps', () => {
    expect(exploreAll(128, [[1], [2], [3]])).toBeGreaterThan(300);
  });

  test('of a ring that is too small for all of them', () => {
    expect(exploreAll(32, [[1], [2], [3]])).toBeGreaterThan(300);
    expect(exploreAll(64, [[4, 9], [2], [16]])).toBeGreaterThan(300);
  });

  test('of records that do not fit before the end', () => {
    expect(exploreAll(64, [[2], [2], [2, 9], [0]])).toBeGreaterThan(300);
  });
});
