import { CreateMode, ErrorCode, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { DEFAULT_LIMIT_OPTIONS } from '../base/limit-options.ts';
import type { TraceEvent } from '../base/ports.ts';
import { create, getData } from '../testing/core-requests.ts';
import { PipelineClient } from '../testing/pipeline-client.ts';
import { LeaderParty, makeServingParts } from '../testing/serving-parties.ts';
import type { ServingParts } from './leader-serving.ts';
import { ReadOnlyServing } from './read-only-serving.ts';
import { ServingLimits } from './serving-limits.ts';

const errorsOf = (client: PipelineClient): number[] => client.replies.map(({ error }) => error);

describe('a server without a leader', () => {
  test('serves reads to a local session, and refuses everything else', () => {
    const serving = new ReadOnlyServing(makeServingParts(1), 0);
    const client = new PipelineClient(serving.pipeline).create();
    client.send(1, getData('/'));
    client.send(2, create('/a'));
    client.send(3, { op: OpCode.sync, path: '/' });
    client.send(4, { op: OpCode.closeSession });
    expect(errorsOf(client)).toEqual([ErrorCode.ok, ErrorCode.notReadOnly, ErrorCode.notReadOnly, ErrorCode.ok]);
    expect(serving.local.localCount).toBe(0);
  });

  test('resumes a replicated session unless it has ephemerals, and does not close it', () => {
    const parts = makeServingParts(1);
    const leader = new LeaderParty(parts);
    const plain = leader.connect().session!.id;
    const holder = leader.connect();
    holder.send(1, create('/e', CreateMode.ephemeral));
    leader.commit();
    leader.serving.drop();
    const serving = new ReadOnlyServing(parts, 0);
    expect(serving.table.resume(holder.session!.id, 4000, 0)).toMatchObject({ kind: 'close' });
    expect(serving.table.resume(2n << 56n, 4000, 0)).toMatchObject({ kind: 'close' });
    expect(serving.table.resume((1n << 56n) + 1n, 4000, 0)).toMatchObject({ kind: 'refuse' });
    const decision = serving.table.resume(plain, 4000, 0);
    if (decision.kind !== 'resume') throw new Error(`it is not resumed: ${decision.kind}`);
    const client = new PipelineClient(serving.pipeline);
    client.onSessionCreated(decision.session);
    client.send(1, { op: OpCode.closeSession });
    expect(errorsOf(client)).toEqual([ErrorCode.notReadOnly]);
    expect(parts.database.sessions.has(plain)).toBe(true);
    // After its timeout it is disconnected here, but not expired.
    for (let nowMs = 0; nowMs <= 10_000; nowMs += 1000) serving.onTick(nowMs);
    expect(client.closeReason).not.toBeNull();
    expect(serving.table.resume(plain, 4000, 10_000)).toMatchObject({ kind: 'resume' });
  });

  test('ends a local session on request, and no session of the ensemble', () => {
    const parts = makeServingParts(1);
    const leader = new LeaderParty(parts);
    const { id } = leader.connect().session!;
    leader.serving.drop();
    const serving = new ReadOnlyServing(parts, 0);
    const [client, other] = [1, 2].map(() => new PipelineClient(serving.pipeline).create());
    const decision = serving.table.resume(id, 4000, 0);
    const resumed = new PipelineClient(serving.pipeline);
    if (decision.kind === 'resume') resumed.onSessionCreated(decision.session);
    expect([serving.expireSession(id), serving.expireSession(77n)]).toEqual([false, false]);
    expect(serving.expireSession(client!.session!.id)).toBe(true);
    expect([client, other, resumed].map((one) => one!.isOpen)).toEqual([false, true, true]);
    expect(serving.expireSession(client!.session!.id)).toBe(false);
    expect(serving.table.get(other!.session!.id)).toBe(other!.session);
  });

  test('expires a local session whose client is silent', () => {
    const trace: TraceEvent[] = [];
    const serving = new ReadOnlyServing(makeServingParts(1, trace), 0);
    const [silent, alive] = [1, 2].map(() => new PipelineClient(serving.pipeline).create(4000));
    const sessionId = silent!.session!.id;
    for (let nowMs = 0; nowMs <= 10_000; nowMs += 1000) {
      alive!.send(-2, { op: OpCode.ping }, nowMs);
      serving.onTick(nowMs);
    }
    expect([silent!.isOpen, alive!.isOpen]).toEqual([false, true]);
    expect(trace).toContainEqual({ kind: 'session-expired', sessionId, timeoutMs: 4000, isLocal: true });
    expect(serving.local.localCount).toBe(1);
  });

  test('enforces the limits of any server', () => {
    const parts: ServingParts = makeServingParts(1);
    const limits = new ServingLimits({ ...DEFAULT_LIMIT_OPTIONS, watchesMax: 1 }, parts.watches, parts.trace);
    const serving = new ReadOnlyServing({ ...parts, limits }, 0);
    const client = new PipelineClient(serving.pipeline).create();
    client.send(1, getData('/', true));
    client.send(2, getData('/zookeeper', true));
    expect(errorsOf(client)).toEqual([ErrorCode.ok, ErrorCode.throttledOp]);
    expect(serving.table.count).toBe(1);
  });
});
