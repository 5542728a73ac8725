import { ErrorCode, OpCode, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { exists } from '../testing/core-requests.ts';
import { errorTxn, ForwardingLearner, idOf, setRoot, xidsOf } from '../testing/forwarding-learner.ts';

describe('a client that reconnects to a learner', () => {
  test('waits for the answer of the leader', () => {
    const learner = new ForwardingLearner();
    const client = learner.client();
    learner.ask(client, 77n, 6000);
    expect(learner.asked).toEqual([{ type: PacketType.revalidate, sessionId: 77n, timeoutMs: 6000 }]);
    expect(client.session).toBeNull();
    learner.serving.onRevalidated(78n, true);
    expect(client.session).toBeNull();
    learner.serving.onRevalidated(77n, true);
    expect(client.session).toMatchObject({ id: 77n, timeoutMs: 6000 });
    client.send(1, exists('/'));
    expect(xidsOf(client)).toEqual([1]);
  });

  test('is refused if the leader says so; nothing happens if it has disconnected meanwhile', () => {
    const learner = new ForwardingLearner();
    const [refused, gone] = [learner.client(), learner.client()];
    learner.ask(refused, 77n);
    learner.ask(gone, 78n);
    gone.close('gone');
    learner.serving.onRevalidated(77n, false);
    learner.serving.onRevalidated(78n, true);
    expect(refused.refusal).toBe('session 0x4d is unknown or has expired');
    expect(gone.session).toBeNull();
    expect(learner.serving.takeTouched(0)).toEqual([]);
  });

  test('closes the connection that the session had here, so that it sends no more requests', () => {
    const learner = new ForwardingLearner();
    const first = learner.connect();
    const second = learner.client();
    learner.ask(second, idOf(first), 9000);
    expect(first.closeReason).toBe('its session has moved to another connection');
    learner.serving.onRevalidated(idOf(first), true);
    expect(second.session).toBe(first.session);
    expect(second.session?.timeoutMs).toBe(9000);
  });

  test('twice has its first connection closed, and waits for the second answer of the leader', () => {
    const learner = new ForwardingLearner();
    const [first, second] = [learner.client(), learner.client()];
    learner.ask(first, 77n);
    learner.ask(second, 77n);
    expect(first.closeReason).toBe('its session has moved to another connection');
    learner.serving.onRevalidated(77n, true);
    expect([first.session, second.session]).toEqual([null, null]);
    learner.serving.onRevalidated(77n, true);
    expect(second.session?.id).toBe(77n);
  });

  test('can resume a session after a closeSession was refused on a superseded connection', () => {
    const learner = new ForwardingLearner();
    const first = learner.connect();
    first.send(1, { op: OpCode.closeSession });
    learner.commitTxn(idOf(first), 1, errorTxn(ErrorCode.sessionMoved));
    const back = learner.reconnect(idOf(first));
    back.send(1, exists('/'));
    expect(xidsOf(back)).toEqual([1]);
  });
});

describe('the list of touched sessions', () => {
  test('holds each session once, and is empty after it is taken', () => {
    const learner = new ForwardingLearner();
    const [ann, bob] = [learner.connect(4000), learner.connect(6000)];
    expect(learner.serving.takeTouched(0)).toHaveLength(2);
    expect(learner.serving.takeTouched(0)).toEqual([]);
    for (let xid = 1; xid < 5; xid++) bob.send(xid, exists('/'));
    ann.send(1, { op: OpCode.ping });
    expect(learner.serving.takeTouched(0)).toEqual([
      { sessionId: idOf(bob), timeoutMs: 6000 },
      { sessionId: idOf(ann), timeoutMs: 4000 },
    ]);
    ann.send(2, setRoot);
    expect(learner.serving.takeTouched(0)).toEqual([{ sessionId: idOf(ann), timeoutMs: 4000 }]);
  });
});
