import { EventEmitter } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { PastAnswer, PastThreadData } from './messages.ts';
import { PastReadings, type PastWorker } from './past-readings.ts';

const SPAN: PastAnswer = { kind: 'span', span: { fromMs: 1, toMs: 2 } };
const STATES: PastAnswer = { kind: 'states', found: { states: [], isCut: false } };

class FakeWorker extends EventEmitter {
  readonly data: PastThreadData;
  isTerminated = false;

  constructor(data: PastThreadData) {
    super();
    this.data = data;
  }

  answer(message: PastAnswer): void {
    this.emit('message', message);
    if (message.kind !== 'tree') this.emit('exit', 0);
  }

  /** A port: its client connects. */
  postMessage(): void {
    this.emit('connecting');
  }

  terminate(): Promise<number> {
    this.isTerminated = true;
    this.emit('exit', 1);
    return Promise.resolve(1);
  }
}

function start() {
  const workers: FakeWorker[] = [];
  let onSpawned = (): void => {};
  const files = { snapshotDirectory: '/data', logDirectory: '/log' };
  const source = {
    files,
    lastZxid: () => Promise.resolve(7),
    addresses: () => Promise.resolve(new Map([[5n, 'there']])),
  };
  const readings = new PastReadings(source, (data) => {
    const worker = new FakeWorker(data);
    workers.push(worker);
    onSpawned();
    return worker as unknown as PastWorker;
  });
  /** The n-th thread. */
  const worker = async (n: number): Promise<FakeWorker> => {
    while (workers.length <= n) await new Promise<void>((resolve) => (onSpawned = resolve));
    return workers[n]!;
  };
  return { readings, workers, worker };
}

describe('the past of the server itself', () => {
  test('is read from its files up to what is applied, by a thread for each reading', async () => {
    const { readings, worker } = start();
    const span = readings.span();
    const first = await worker(0);
    expect(first.data).toEqual({
      files: { snapshotDirectory: '/data', logDirectory: '/log' },
      committed: 7,
      question: { kind: 'span' },
    });
    first.answer(SPAN);
    expect(await span).toEqual({ fromMs: 1, toMs: 2 });
    const states = readings.states('/a');
    const second = await worker(1);
    expect(second.data.question).toEqual({ kind: 'states', path: '/a', addresses: new Map([[5n, 'there']]) });
    second.answer(STATES);
    expect(await states).toEqual({ states: [], isCut: false });
  });

  test('is read by one at a time: of five that ask at once the fifth is refused, the others come in turn', async () => {
    const { readings, workers, worker } = start();
    const asked = [0, 1, 2, 3].map(() => readings.span());
    await expect(readings.span()).rejects.toMatchObject({ status: 429, code: 'too-many' });
    for (const [n, answer] of asked.entries()) {
      const reader = await worker(n);
      expect(workers).toHaveLength(n + 1);
      reader.answer(SPAN);
      expect(await answer).toEqual({ fromMs: 1, toMs: 2 });
    }
    const again = readings.span();
    (await worker(4)).answer(SPAN);
    await again;
  });

  test('is refused when a tree is too large or its thread runs out of memory; the next one is served', async () => {
    const { readings, worker } = start();
    const refusal = { status: 413, code: 'too-large' };
    const one = expect(readings.open('now')).rejects.toMatchObject(refusal);
    (await worker(0)).answer({ kind: 'too-large' });
    await one;
    const other = expect(readings.open('now')).rejects.toMatchObject(refusal);
    const dying = await worker(1);
    dying.emit('error', Object.assign(new Error('out of memory'), { code: 'ERR_WORKER_OUT_OF_MEMORY' }));
    dying.emit('exit', 1);
    await other;
    const span = readings.span();
    (await worker(2)).answer(SPAN);
    await span;
  });

  test('says what is wrong with the files, and of a thread that ends without an answer that it has', async () => {
    const { readings, worker } = start();
    const failed = expect(readings.span()).rejects.toMatchObject({
      name: 'ArchiveError',
      fault: 'damaged',
      message: 'bad',
    });
    (await worker(0)).answer({ kind: 'failed', fault: 'damaged', text: 'bad' });
    await failed;
    const ended = expect(readings.span()).rejects.toThrow('has ended: exit code 3');
    (await worker(1)).emit('exit', 3);
    await ended;
  });

  test('has no tree at what is no moment, and no thread is left of it', async () => {
    const { readings, worker } = start();
    const open = readings.open('whenever');
    const reader = await worker(0);
    reader.answer({ kind: 'tree', tree: null });
    expect(await open).toBe(null);
    expect(reader.isTerminated).toBe(true);
  });

  test('is read on when a thread dies as soon as it has a tree', async () => {
    const { readings, worker } = start();
    const open = expect(readings.open('now')).rejects.toThrow();
    const dying = await worker(0);
    // Behind the answer, before its client has a session.
    dying.once('connecting', () => dying.emit('exit', 1));
    dying.answer({ kind: 'tree', tree: { zxid: '0x7', atMs: 1 } });
    await open;
    const span = readings.span();
    (await worker(1)).answer(SPAN);
    await span;
  });

  test('is not read on when the server ends, nor is what waits for its turn', async () => {
    const { readings, workers, worker } = start();
    const span = expect(readings.span()).rejects.toThrow('has ended');
    const waiting = expect(readings.span()).rejects.toThrow('the server is stopping');
    const reader = await worker(0);
    await readings.close();
    expect(reader.isTerminated).toBe(true);
    await span;
    await waiting;
    expect(workers).toHaveLength(1);
  });
});
