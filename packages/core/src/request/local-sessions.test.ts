import {
  CreateMode,
  ErrorCode,
  type ForwardedRequestPacket,
  OpCode,
  PacketType,
  type Request,
} from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { type CoreOptions, DEFAULT_ENSEMBLE_OPTIONS, type EnsembleOptions } from '../base/options.ts';
import { create } from '../testing/core-requests.ts';
import { LeaderParty, LearnerParty, makeServingParts } from '../testing/serving-parties.ts';
import type { ServingParts } from './leader-serving.ts';

const createEphemeral = (path: string): Request => create(path, CreateMode.ephemeral);
const closeSession: Request = { op: OpCode.closeSession };

function partsOf(serverId: number, overrides: Partial<EnsembleOptions> = {}): Partial<ServingParts> {
  const { options } = makeServingParts(serverId);
  const ensemble = {
    ...DEFAULT_ENSEMBLE_OPTIONS,
    membership: { members: [], groups: null, version: 0 },
    localSessionsEnabled: true,
    localSessionsUpgradingEnabled: true,
    ...overrides,
  } as unknown as EnsembleOptions;
  return { options: { ...options, ensemble } satisfies CoreOptions };
}

/** Passes the requests of a learner to the leader, and the resulting txns back. */
class Pair {
  readonly leader: LeaderParty;
  readonly learner: LearnerParty;
  #reported = 0;

  constructor(overrides: Partial<EnsembleOptions> = {}) {
    this.leader = new LeaderParty(partsOf(1, overrides));
    this.learner = new LearnerParty(2, partsOf(2, overrides));
  }

  /** Answers all outstanding requests. */
  settle(nowMs = 0): void {
    for (const packet of this.learner.asked.splice(0)) {
      if (packet.type === PacketType.request) this.leader.forward(2, packet, nowMs);
    }
    this.leader.commit();
    this.report();
  }

  report(): void {
    for (const entry of this.leader.log.slice(this.#reported)) {
      this.learner.propose(entry);
      this.learner.commit(entry.header.zxid);
    }
    this.#reported = this.leader.log.length;
  }

  get types(): number[] {
    return this.leader.log.map(({ txn }) => txn.type);
  }
}

describe('a local session at a learner', () => {
  test('exists at once, and only its writes are sent to the leader', () => {
    const pair = new Pair();
    const client = pair.learner.client().create();
    expect(client.session).toMatchObject({ isLocal: true });
    expect(pair.learner.asked).toEqual([]);
    client.send(1, create('/a'));
    pair.settle();
    client.send(2, closeSession);
    pair.settle();
    expect(client.replies.map(({ xid, error }) => [xid, error])).toEqual([
      [1, ErrorCode.ok],
      [2, ErrorCode.ok],
    ]);
    expect(client.closeReason).not.toBeNull();
    expect(pair.types).toEqual([OpCode.create]);
    expect(pair.learner.serving.takeTouched(0)).toEqual([]);
    expect(pair.learner.serving.local?.localCount).toBe(0);
  });

  test('counts as one session for the session limit, before and after its upgrade', () => {
    const pair = new Pair();
    const client = pair.learner.client().create();
    expect(pair.learner.serving.table.count).toBe(1);
    client.send(1, createEphemeral('/e'));
    pair.settle();
    expect(pair.learner.serving.table.count).toBe(1);
  });

  test('keeps its id from being given again, before and after its upgrade', () => {
    const pair = new Pair();
    const client = pair.learner.client().create();
    const { id } = client.session!;
    const areTaken = () => [id, id + 1n].map((other) => pair.learner.serving.table.isTaken(other));
    expect(areTaken()).toEqual([true, false]);
    client.send(1, createEphemeral('/e'));
    pair.settle();
    expect(areTaken()).toEqual([true, false]);
  });

  test('is closed after its own writes, and the closeSession is answered in order', () => {
    const pair = new Pair();
    const client = pair.learner.client().create();
    client.send(1, create('/a'));
    client.send(2, closeSession);
    expect(client.replies).toEqual([]);
    expect(pair.learner.serving.local?.localCount).toBe(0);
    pair.settle();
    expect(client.replies.map(({ xid }) => xid)).toEqual([1, 2]);
  });

  test('is upgraded once, before its first ephemeral', () => {
    const pair = new Pair();
    const client = pair.learner.client().create(7000);
    const id = client.session!.id;
    client.send(1, createEphemeral('/e'));
    client.send(2, createEphemeral('/f'));
    pair.settle();
    expect(pair.types).toEqual([OpCode.createSession, OpCode.create, OpCode.create]);
    expect(pair.leader.serving.sessions.get(id)).toMatchObject({ timeoutMs: 7000, owner: 2 });
    expect(pair.leader.serving.database.tree.ephemeralsOf(id)).toEqual(['/e', '/f']);
    expect(client.session).toMatchObject({ id, isLocal: false });
    expect(pair.learner.serving.takeTouched(0)).toEqual([{ sessionId: id, timeoutMs: 7000 }]);
    client.send(3, closeSession);
    pair.settle();
    expect(pair.types.at(-1)).toBe(OpCode.closeSession);
    expect(pair.leader.serving.database.tree.ephemeralsOf(id)).toEqual([]);
  });

  test('is upgraded for an ephemeral anywhere in a multi', () => {
    const pair = new Pair();
    const client = pair.learner.client().create();
    const part = (request: Request) => request as Extract<Request, { op: typeof OpCode.create }>;
    client.send(1, { op: OpCode.multi, ops: [part(create('/a')), part(createEphemeral('/a/e'))] });
    // ZOOKEEPER-3471: the upgrade must have happened when this checks whether the session is local.
    client.send(2, closeSession);
    pair.settle();
    expect(pair.types).toEqual([OpCode.createSession, OpCode.multi, OpCode.closeSession]);
    expect(pair.leader.serving.database.tree.ephemeralCount).toBe(0);
  });

  test('is refused an ephemeral, in order, where upgrades are disabled', () => {
    const pair = new Pair({ localSessionsUpgradingEnabled: false });
    const client = pair.learner.client().create();
    client.send(1, create('/a'));
    client.send(2, createEphemeral('/e'));
    pair.settle();
    expect(client.replies.map(({ error }) => error)).toEqual([ErrorCode.ok, ErrorCode.ephemeralOnLocalSession]);
    expect(pair.types).toEqual([OpCode.create]);
  });

  test('stays alive as long as it is touched', () => {
    const pair = new Pair();
    const { serving } = pair.learner;
    const client = pair.learner.client().create(4000);
    for (let nowMs = 0; nowMs <= 20_000; nowMs += 1000) {
      serving.table.touch(client.session!, nowMs);
      serving.onTick(nowMs);
    }
    expect(client.closeReason).toBeNull();
    expect(pair.learner.trace).toEqual([]);
  });

  test('is resumed at its server, and expires there', () => {
    const pair = new Pair();
    const { serving } = pair.learner;
    const client = pair.learner.client().create(4000);
    const { id } = client.session!;
    expect(serving.table.resume(id, 4000, 3000)).toMatchObject({ kind: 'resume', session: { id } });
    for (let nowMs = 3000; nowMs < 8000; nowMs += 1000) serving.onTick(nowMs);
    expect(client.closeReason).toBeNull();
    serving.onTick(8000);
    expect(client.closeReason).not.toBeNull();
    expect(pair.learner.trace).toMatchObject([{ kind: 'session-expired' }, { kind: 'session-closed' }]);
    expect(serving.table.resume(id, 4000, 8000)).toMatchObject({ kind: 'revalidate' });
  });
});

describe('a leader', () => {
  test('creates local sessions for its own clients, and upgrades them', () => {
    const { leader } = new Pair();
    const client = leader.connect();
    client.send(1, create('/a'));
    client.send(2, createEphemeral('/e'));
    leader.commit();
    expect(client.replies.map(({ error }) => error)).toEqual([ErrorCode.ok, ErrorCode.ok]);
    expect(leader.log.map(({ txn }) => txn.type)).toEqual([OpCode.create, OpCode.createSession, OpCode.create]);
  });

  test('knows a session that is being upgraded while a long request is prepared', () => {
    const pace = { unitsPerTurn: 1000, changesAtOnce: 1, preparedPerTurn: 1 };
    const leader = new LeaderParty({ ...partsOf(1), pace });
    const { learner } = new Pair();
    const client = learner.client().create();
    const { id } = client.session!;
    client.send(1, createEphemeral('/e'));
    const part = (path: string) => create(path) as Extract<Request, { op: typeof OpCode.create }>;
    leader.connect().send(1, { op: OpCode.multi, ops: [part('/a'), part('/b'), part('/c')] });
    for (const packet of learner.asked) {
      if (packet.type === PacketType.request) leader.forward(2, packet);
    }
    // Its client reconnects before the multi is prepared, which still takes several turns.
    const proposed = leader.broadcast.lastProposed;
    const asked = [leader.revalidate(2, id, 4000), leader.revalidate(2, id + 1n, 4000)];
    expect(asked).toEqual([true, false]);
    expect(leader.broadcast.lastProposed).toBe(proposed);
    for (let turns = 0; turns < 4; turns++) leader.serving.pipeline.onTurnEnd(0);
    leader.commit();
    expect(leader.outcomesOf(id)).toEqual([OpCode.createSession, OpCode.create]);
  });

  test('refuses an ephemeral for an unknown session', () => {
    const { leader } = new Pair();
    const id = 2n << 56n;
    const { learner } = new Pair({ localSessionsEnabled: false });
    const client = learner.client();
    client.onSessionCreated(learner.serving.sessions.open(id, 4000, 0));
    client.send(1, createEphemeral('/e'));
    client.send(2, create('/a'));
    for (const packet of learner.asked) {
      if (packet.type === PacketType.request) leader.forward(2, packet);
    }
    expect(leader.outcomesOf(id)).toEqual([ErrorCode.sessionExpired, OpCode.create]);
  });

  test('refuses writes of a replicated session that has just ended, and of an unknown one with its own id', () => {
    const pair = new Pair();
    const client = pair.learner.client().create();
    const { id } = client.session!;
    client.send(1, createEphemeral('/e'));
    pair.settle();
    pair.leader.serving.expireSession(id, 0);
    pair.leader.commit();
    // The learner has not yet received the closeSession.
    client.send(2, create('/late'));
    pair.settle();
    expect(pair.leader.outcomesOf(id).at(-1)).toBe(ErrorCode.sessionExpired);
    const own = { type: PacketType.request, cxid: 1, op: OpCode.create, authInfo: [] } as const;
    const { body } = { body: new Uint8Array(0) };
    pair.leader.forward(2, { ...own, sessionId: 1n << 56n, body });
    expect(pair.leader.outcomesOf(1n << 56n)).toEqual([ErrorCode.sessionExpired]);
  });

  test('forgets that a session has ended, once every learner must have applied its end', () => {
    const pair = new Pair();
    const client = pair.learner.client().create();
    const { id } = client.session!;
    client.send(1, createEphemeral('/e'));
    pair.settle();
    client.send(2, create('/late'));
    const [late] = pair.learner.asked;
    const send = (): number | undefined => {
      pair.leader.forward(2, late as ForwardedRequestPacket);
      return pair.leader.outcomesOf(id).at(-1);
    };
    pair.leader.serving.expireSession(id, 0);
    pair.leader.commit();
    expect(send()).toBe(ErrorCode.sessionExpired);
    const { tickTimeMs, ensemble } = partsOf(1).options!;
    const memoryMs = 2 * tickTimeMs * (ensemble!.syncLimit + 2);
    pair.leader.serving.onTick(memoryMs, 0);
    expect(send()).toBe(ErrorCode.sessionExpired);
    pair.leader.serving.onTick(2 * memoryMs, 0);
    expect(send()).toBe(OpCode.create);
  });
});
