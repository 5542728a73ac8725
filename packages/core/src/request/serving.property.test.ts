/** Clients randomly write, read, sync, move between servers, disconnect and close their sessions. */
import { type Acl, CreateMode, OPEN_ACL, OpCode, type Request } from '@meerkat/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Conversation, isWrite } from '../testing/serving-conversation.ts';
import type { ServingParts } from './leader-serving.ts';

const READ_ONLY: readonly Acl[] = [{ perms: 1, scheme: 'world', id: 'anyone' }];

const anyPath = fc.constantFrom('/a', '/b', '/a/x', '/a/y', '/b/z');
const anyData = fc.uint8Array({ maxLength: 4 });
const anyVersion = fc.constantFrom(-1, -1, 0, 1);
const anyFlags = fc.constantFrom(
  CreateMode.persistent,
  CreateMode.ephemeral,
  CreateMode.persistentSequential,
  CreateMode.ephemeralSequential,
);
const anyCreate = fc.record({
  op: fc.constantFrom(OpCode.create, OpCode.create2),
  path: anyPath,
  data: anyData,
  acl: fc.constantFrom(OPEN_ACL, OPEN_ACL, READ_ONLY),
  flags: anyFlags,
  ttl: fc.constant(-1),
});
const anyDelete = fc.record({ op: fc.constant(OpCode.delete), path: anyPath, version: anyVersion });
const anySetData = fc.record({ op: fc.constant(OpCode.setData), path: anyPath, data: anyData, version: anyVersion });
const anyRequest: fc.Arbitrary<Request> = fc.oneof(
  { weight: 6, arbitrary: anyCreate },
  { weight: 3, arbitrary: anyDelete },
  { weight: 3, arbitrary: anySetData },
  fc.record({ op: fc.constant(OpCode.setACL), path: anyPath, acl: fc.constant(OPEN_ACL), version: anyVersion }),
  fc.record({
    op: fc.constant(OpCode.multi),
    ops: fc.array(fc.oneof(anyCreate, anyDelete, anySetData), { maxLength: 3 }),
  }),
  { weight: 3, arbitrary: fc.record({ op: fc.constant(OpCode.getData), path: anyPath, watch: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant(OpCode.sync), path: anyPath }) },
  fc.constant({ op: OpCode.closeSession }),
);

type Step = (conversation: Conversation) => void;

/** Every txn that can be applied in steps is. */
const IN_PIECES: Partial<ServingParts> = { pace: { unitsPerTurn: 20, changesAtOnce: 1, preparedPerTurn: 1 } };

const anyPick = fc.nat(1000);
const anyServer = fc.nat(2);
const anyLink = fc.nat(1);
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.tuple(anyPick, anyRequest).map(
      ([pick, request]): Step =>
        (c) =>
          c.send(pick, request),
    ),
  },
  {
    weight: 8,
    arbitrary: anyLink.map(
      (link): Step =>
        (c) =>
          c.hearLearner(c.links[link]!),
    ),
  },
  {
    weight: 16,
    arbitrary: anyLink.map(
      (link): Step =>
        (c) =>
          c.hearLeader(c.links[link]!),
    ),
  },
  {
    weight: 6,
    arbitrary: fc.integer({ min: 1, max: 4 }).map(
      (count): Step =>
        (c) =>
          c.commit(count),
    ),
  },
  {
    weight: 8,
    arbitrary: anyServer.map(
      (server): Step =>
        (c) =>
          c.endTurn(server),
    ),
  },
  {
    weight: 2,
    arbitrary: anyServer.map(
      (server): Step =>
        (c) =>
          c.arrive(server),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(anyPick, anyServer).map(
      ([pick, server]): Step =>
        (c) =>
          c.move(pick, server),
    ),
  },
  {
    weight: 1,
    arbitrary: anyPick.map(
      (pick): Step =>
        (c) =>
          c.leave(pick),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 1000 }).map(
      (ms): Step =>
        (c) =>
          c.pass(ms),
    ),
  },
);

test.each([
  ['as they come', {}],
  ['in pieces', IN_PIECES],
] as const)(
  "servers agree on everything, and no client gets the reply to another's request: txns are applied %s",
  (_how, parts) => {
    let writesAnswered = 0;
    fc.assert(
      fc.property(fc.array(anyStep, { minLength: 100, maxLength: 400, size: 'max' }), (steps) => {
        const conversation = new Conversation(parts);
        for (let server = 0; server < 3; server++) conversation.arrive(server);
        conversation.settle();
        for (const step of steps) step(conversation);
        conversation.check();
        for (const { client, asked } of conversation.visits) {
          writesAnswered += client.replies.filter((_, i) => isWrite(asked[i]!.request)).length;
        }
      }),
      { numRuns: 150, endOnFailure: true },
    );
    expect(writesAnswered).toBeGreaterThan(500);
  },
);
