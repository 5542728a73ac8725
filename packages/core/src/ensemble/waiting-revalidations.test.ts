import { makeZxid, type Zxid } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { WaitingRevalidations } from './waiting-revalidations.ts';

const zxid = (counter: number): Zxid => makeZxid(1, counter);

/** The answers sent when learners have been sent everything up to these zxids. */
function answersOf(waiting: WaitingRevalidations, sentUpTo: Readonly<Record<number, number>>): string[] {
  const answers: string[] = [];
  waiting.answer(
    (link, upTo) => upTo <= zxid(sentUpTo[link] ?? 0),
    (link, sessionId) => answers.push(`${sessionId} at ${link}`),
  );
  return answers;
}

test('sessions wait until their own learner has been sent enough', () => {
  const waiting = new WaitingRevalidations();
  waiting.add(1, zxid(5), 10n);
  waiting.add(2, zxid(5), 20n);
  waiting.add(1, zxid(7), 11n);
  expect(answersOf(waiting, { 1: 4, 2: 4 })).toEqual([]);
  expect(answersOf(waiting, { 1: 6, 2: 4 })).toEqual(['10 at 1']);
  expect(answersOf(waiting, { 1: 7, 2: 5 })).toEqual(['11 at 1', '20 at 2']);
  expect(answersOf(waiting, { 1: 9, 2: 9 })).toEqual([]);
});

test('a disconnected learner gets no answer', () => {
  const waiting = new WaitingRevalidations();
  waiting.add(1, zxid(5), 10n);
  waiting.forget(1);
  expect(answersOf(waiting, { 1: 9 })).toEqual([]);
});

test('only the oldest waiting answer of each learner is checked', () => {
  const waiting = new WaitingRevalidations();
  let asked = 0;
  const wait = (): boolean => {
    asked++;
    return false;
  };
  for (let i = 0; i < 20_000; i++) {
    waiting.add(i % 2, zxid(i + 1), BigInt(i));
    if (i % 100 === 0) waiting.answer(wait, () => {});
  }
  expect(asked).toBeLessThanOrEqual(400);
  expect(answersOf(waiting, { 0: 20_000, 1: 20_000 })).toHaveLength(20_000);
});
