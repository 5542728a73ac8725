/** S8, as clients see it: no server says that a session is over which nobody has ended. */
import type { History } from '../history.ts';
import type { CommittedTree } from './committed-tree.ts';
import type { Violations } from './violation.ts';

export function checkRefusals(history: History, tree: CommittedTree, violations: Violations): void {
  const ended = new Set<bigint>();
  for (const [id, { closedZxid }] of tree.sessions) if (closedZxid !== null) ended.add(id);
  for (const entry of history.entries) {
    // The txn may have been lost with its leader, and the client been told of it all the same.
    if (entry.kind === 'expired') ended.add(entry.sessionId);
    else if (entry.kind === 'invoked' && entry.operation.request.op === 'close') ended.add(entry.operation.sessionId);
    if (entry.kind !== 'refused' || !tree.sessions.has(entry.sessionId) || ended.has(entry.sessionId)) continue;
    const { client, server, sessionId, atMs } = entry;
    const message = `${server} tells client ${client} that session 0x${sessionId.toString(16)} is over`;
    violations.reportAt(atMs, 'S8', [], `${message}, which nobody has ended`);
  }
}
