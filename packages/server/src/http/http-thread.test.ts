import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SILENT_LOGGER } from '../logger.ts';
import { HttpFigures } from './figures.ts';
import { type Answer, HttpThread, type HttpWorker } from './http-thread.ts';
import type { ToHttp } from './messages.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

class FakeWorker extends EventEmitter {
  readonly sent: ToHttp[] = [];

  postMessage(message: ToHttp): void {
    this.sent.push(message);
  }

  terminate(): Promise<number> {
    return Promise.resolve(0);
  }

  unref(): void {}
}

test('a thread that ends is started again, later each time, and not after the end of the server', async () => {
  const { workers, thread, lost } = start(() => new Promise(() => {}));
  expect(workers).toHaveLength(1);
  workers[0]?.emit('error', new Error('out of memory'));
  workers[0]?.emit('exit', 1);
  expect(lost()).toBe(1);
  vi.advanceTimersByTime(1000);
  expect(workers).toHaveLength(2);
  workers[1]?.emit('exit', 1);
  vi.advanceTimersByTime(1000);
  expect(workers).toHaveLength(2);
  vi.advanceTimersByTime(1000);
  expect(workers).toHaveLength(3);
  workers[2]?.emit('exit', 1);
  await thread.stop();
  vi.advanceTimersByTime(100_000);
  expect(workers).toHaveLength(3);
});

test('an answer to a thread that has ended does not reach the next one', async () => {
  let answer = (_: Answer): void => {};
  const { workers } = start(
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  );
  workers[0]?.emit('message', { kind: 'ask', id: 1, question: { kind: 'index' } });
  workers[0]?.emit('exit', 1);
  vi.advanceTimersByTime(1000);
  answer({ status: 200, contentType: null, headers: {}, file: null, pieces: ['late'] });
  await vi.advanceTimersByTimeAsync(1000);
  expect(workers[1]?.sent).toEqual([]);
});

function start(answer: () => Promise<Answer>): { workers: FakeWorker[]; thread: HttpThread; lost: () => number } {
  const workers: FakeWorker[] = [];
  let lost = 0;
  const desk = { answer, onThreadLost: () => void lost++, stop: () => {} };
  const spawn = (): HttpWorker => {
    const worker = new FakeWorker();
    workers.push(worker);
    return worker as unknown as HttpWorker;
  };
  const data = { admin: null, metrics: [], figures: new HttpFigures().buffer };
  const thread = new HttpThread(data, desk, SILENT_LOGGER, () => null, spawn);
  thread.start();
  return { workers, thread, lost: () => lost };
}
