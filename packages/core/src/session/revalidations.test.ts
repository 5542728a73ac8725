import { expect, test } from 'vitest';
import { type ResumingClient, Revalidations } from './revalidations.ts';
import { Session } from './session.ts';

test('answers are matched to questions in their order, each with the timeout that its client negotiated', () => {
  const opened: (readonly [timeoutMs: number, askedMs: number])[] = [];
  const open = (id: bigint, timeoutMs: number, askedMs: number): Session => {
    opened.push([timeoutMs, askedMs]);
    return new Session(id, timeoutMs);
  };
  const answers: string[] = [];
  const clientOf = (name: string): ResumingClient => ({
    isOpen: true,
    onSessionResumed: () => answers.push(`${name} is resumed`),
    onSessionRefused: () => answers.push(`${name} is refused`),
    closeAfterReplies: () => answers.push(`${name} is superseded`),
  });
  const revalidations = new Revalidations({ open }, () => {});
  revalidations.ask(clientOf('first'), 7n, 4000, 10);
  revalidations.ask(clientOf('second'), 7n, 6000, 20);
  revalidations.onRevalidated(7n, true);
  revalidations.onRevalidated(7n, false);
  revalidations.onRevalidated(7n, true);
  expect(opened).toEqual([[4000, 10]]);
  expect(answers).toEqual(['first is superseded', 'first is resumed', 'second is refused']);
});
