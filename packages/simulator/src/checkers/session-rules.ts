/** S8, as clients see it: a server reports a session as ended only if it was. And S11. */
import type { History } from '../history.ts';
import type { CommittedTree } from './committed-tree.ts';
import type { Violations } from './violation.ts';

export function checkRefusals(history: History, tree: CommittedTree, violations: Violations): void {
  const ended = new Set<bigint>();
  for (const [id, { closedZxid }] of tree.sessions) if (closedZxid !== null) ended.add(id);
  for (const entry of history.entries) {
    // The txn may be lost with its leader although the client was told of it.
    if (entry.kind === 'expired') ended.add(entry.sessionId);
    else if (entry.kind === 'invoked' && entry.operation.request.op === 'close') ended.add(entry.operation.sessionId);
    if (entry.kind !== 'refused' || !tree.sessions.has(entry.sessionId) || ended.has(entry.sessionId)) continue;
    const { client, server, sessionId, atMs } = entry;
    const message = `${server} tells client ${client} that session 0x${sessionId.toString(16)} is over`;
    violations.reportAt(atMs, 'S8', [], `${message}, which was never ended`);
  }
}

/** S11: a client that reconnects reports the same session if and only if it is. */
export function checkSameness(history: History, violations: Violations): void {
  const before: Map<string, bigint> = new Map();
  for (const entry of history.entries) {
    if (entry.kind !== 'state') continue;
    const { client, state, sessionId, sameSession, atMs } = entry;
    const last = before.get(client);
    // The next program under this name has a session of its own.
    if (state === 'closed' || state === 'auth-failed') before.delete(client);
    else before.set(client, sessionId);
    if (state !== 'connected' || last === undefined || sameSession === (sessionId === last)) continue;
    const message = `client ${client} says that session 0x${sessionId.toString(16)} is ${sameSession ? 'the same' : 'another'}`;
    violations.reportAt(atMs, 'S11', [], `${message}; it had 0x${last.toString(16)}`);
  }
}
