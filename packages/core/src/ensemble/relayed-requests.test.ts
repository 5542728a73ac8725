import { type ForwardedRequestPacket, OpCode, PacketType } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { RelayedRequests } from './relayed-requests.ts';

const request = (op: number, sessionId: bigint, cxid = 1): ForwardedRequestPacket => ({
  type: PacketType.request,
  op,
  sessionId,
  cxid,
  body: new Uint8Array(0),
  authInfo: [],
});

test('answers to syncs are counted for the askers, in order', () => {
  const questions = new RelayedRequests();
  expect([null, 7, 8, null, null].map((asker) => questions.onSync(asker))).toEqual([1, 2, 3, 4, 5]);
  // Of the follower's own syncs, the leader has answered so many.
  expect([0, 1, 2, 3, 3, 5].map((answered) => questions.onSynced(answered))).toEqual([0, 1, 1, 1, 1, 3]);
});

test('answers about a session go to those that asked about it, in order', () => {
  const questions = new RelayedRequests();
  for (const [asker, id] of [
    [7, 1n],
    [null, 2n],
    [8, 1n],
  ] as const) {
    questions.onRevalidate(asker, id);
  }
  expect([1n, 2n, 1n].map((id) => questions.takeRevalidation(id, true))).toEqual([7, null, 8]);
});

test('a request of a session through one observer is dropped once it has moved to another', () => {
  const questions = new RelayedRequests();
  expect(questions.mayAsk(7, request(OpCode.createSession, 1n))).toBe(true);
  questions.onRevalidate(8, 1n);
  expect(questions.mayAsk(7, request(OpCode.setData, 1n))).toBe(false);
  expect(questions.mayAsk(8, request(OpCode.setData, 1n))).toBe(true);
  // An administrative close may come from any server.
  expect(questions.mayAsk(7, request(OpCode.closeSession, 1n, 0))).toBe(true);
  questions.onRevalidate(null, 1n);
  expect(questions.mayAsk(8, request(OpCode.setData, 1n))).toBe(false);
  questions.onSessionClosed(1n);
  expect(questions.mayAsk(8, request(OpCode.setData, 1n))).toBe(true);
});

test('a session that ended before its client reconnected is forgotten', () => {
  const questions = new RelayedRequests();
  questions.onRevalidate(7, 1n);
  questions.onRevalidate(8, 1n);
  expect(questions.takeRevalidation(1n, false)).toBe(7);
  // The second answer is still pending.
  expect(questions.mayAsk(7, request(OpCode.setData, 1n))).toBe(false);
  expect(questions.takeRevalidation(1n, false)).toBe(8);
  expect(questions.mayAsk(7, request(OpCode.setData, 1n))).toBe(true);
});
