import { describe, expect, test } from 'vitest';
import { DEFAULT_CORE_OPTIONS } from '../base/options.ts';
import { AnswerGate } from './answer-gate.ts';
import type { ClientConnection } from './client-connection.ts';
import { ClientConnections } from './client-connections.ts';

/** A connection whose session is closed: its last reply is written, after which it will be closed. */
class ClosingConnection {
  readonly session = {};
  readonly isOpen = false;
  readonly done: string[] = [];

  flush(): boolean {
    this.done.push('answered');
    return false;
  }

  abandon(): void {
    this.done.push('abandoned');
  }

  closeAfterReplies(): void {}

  close(): void {}
}

describe('the last reply of a closing connection while replies may not leave', () => {
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs, wallMs: () => 0 };

  function makeKept(): { connections: ClientConnections; closing: ClosingConnection; lease: { untilMs: number } } {
    const gate = new AnswerGate(clock);
    const lease = { untilMs: -1 };
    gate.begin(lease);
    const connections = new ClientConnections(DEFAULT_CORE_OPTIONS, gate);
    const closing = new ClosingConnection();
    const connection = closing as unknown as ClientConnection;
    (connections.all as Set<ClientConnection>).add(connection);
    connections.onOutput(connection);
    connections.flush();
    expect(closing.done).toEqual([]);
    return { connections, closing, lease };
  }

  test('leaves once replies may leave', () => {
    const { connections, closing, lease } = makeKept();
    lease.untilMs = 1;
    connections.flush();
    expect(closing.done).toEqual(['answered']);
  });

  test('is dropped when the role ends before that, even if the next role may answer', () => {
    const { connections, closing } = makeKept();
    connections.closeAfterReplies('its role has ended');
    expect(closing.done).toEqual(['abandoned']);
  });

  test('leaves at the end of the role if it may then, and not later', () => {
    const { connections, closing, lease } = makeKept();
    lease.untilMs = 1;
    connections.closeAfterReplies('its role has ended');
    lease.untilMs = -1;
    connections.flush();
    expect(closing.done).toEqual(['answered']);
  });
});
