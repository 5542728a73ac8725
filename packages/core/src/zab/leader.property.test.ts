/**
 * A leader and foreign connections: whatever packets they send, no assertion fails, the existing followers stay, and no
 * epochs are used up.
 */
import {
  type LearnerInfoPacket,
  type LearnerPacket,
  MAX_EPOCH,
  makeZxid,
  PacketType,
  type Zxid,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EPOCHS_FAR } from '../election/plausible.ts';
import { TestLeader } from '../testing/test-leader.ts';

/** The absent voter: strangers that claim its id can have the most effect. */
const AWAY = 2;
const STRANGERS = [10, 11, 12];

const zxid: fc.Arbitrary<Zxid> = fc
  .record({
    epoch: fc.oneof(fc.nat(4), fc.constantFrom(20, EPOCHS_FAR, MAX_EPOCH - 1, MAX_EPOCH)),
    counter: fc.oneof(fc.constant(0), fc.nat(9)),
  })
  .map(({ epoch, counter }) => makeZxid(epoch, counter));

const info: fc.Arbitrary<LearnerInfoPacket> = fc.record({
  type: fc.constantFrom(PacketType.followerInfo, PacketType.followerInfo, PacketType.observerInfo),
  zxid,
  serverId: fc.constantFrom(AWAY, AWAY, AWAY, 1, 3, 7, -1, -2, null),
  protocolVersion: fc.constantFrom(0x10000, 0x10000, 0x10000, 1),
  configVersion: fc.constantFrom(makeZxid(0, 0), null),
  announces: fc.nat(15),
});

const packet: fc.Arbitrary<LearnerPacket> = fc.oneof(
  info,
  info,
  fc.record({
    type: fc.constant(PacketType.ackEpoch),
    zxid,
    currentEpoch: fc.oneof(fc.nat(4), fc.constantFrom(-1, -7, MAX_EPOCH, 2 ** 31 - 1)),
  }),
  fc.record({ type: fc.constant(PacketType.ack), zxid }),
  fc.record({ type: fc.constant(PacketType.ping), zxid, sessions: fc.constant([{ sessionId: 5n, timeoutMs: -1 }]) }),
  fc.record({ type: fc.constant(PacketType.revalidate), sessionId: fc.constant(5n), timeoutMs: fc.integer() }),
  fc.constant({ type: null, typeNumber: 99 }),
);

type Step =
  | { readonly kind: 'say'; readonly stranger: number; readonly packet: LearnerPacket }
  | { readonly kind: 'close'; readonly stranger: number }
  | { readonly kind: 'disk' | 'propose' }
  | { readonly kind: 'wait'; readonly ms: number };

const stranger = fc.constantFrom(...STRANGERS);
const say = fc.record({ kind: fc.constant('say' as const), stranger, packet });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: say },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const), stranger }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('disk' as const, 'propose' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(3000) }) },
);

test('foreign packets never fail an assertion, disconnect a follower or advance the epoch too far', () => {
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }),
      fc.boolean(),
      fc.nat(30),
      (steps, isEarly, ticks) => {
        const leader = new TestLeader();
        if (isEarly) leader.start();
        else {
          leader.establish([1]);
          leader.advance(1000 * ticks, [1]);
        }
        let waitedMs = 1000 * ticks;
        const written: number[] = [];
        const listen = (): void => {
          for (const { text } of leader.take()) {
            const epoch = /^writes acceptedEpoch (\d+)/.exec(text)?.[1];
            if (epoch !== undefined) written.push(Number(epoch));
            if (!isEarly) expect(text).not.toMatch(/^closes 1:/);
          }
        };
        for (const step of steps) {
          if (leader.leader.phase === 'over') break;
          play(leader, isEarly ? withoutVoter1(step) : step);
          if (step.kind === 'wait') waitedMs += step.ms;
          listen();
        }
        leader.disk();
        listen();
        // It had accepted epoch 1; once established it is of epoch 2, and syncLimit is 5 seconds.
        const latest = isEarly ? 2 + EPOCHS_FAR : 2 + Math.floor(waitedMs / 5000);
        for (const epoch of written) expect(epoch).toBeLessThanOrEqual(latest);
      },
    ),
    { numRuns: 500 },
  );
});

/** Keeps strangers from claiming voter 1 too: as two of three voters they would be a quorum with this leader. */
function withoutVoter1(step: Step): Step {
  if (step.kind !== 'say' || !('serverId' in step.packet) || step.packet.serverId !== 1) return step;
  return { ...step, packet: { ...step.packet, serverId: AWAY } };
}

function play(leader: TestLeader, step: Step): void {
  switch (step.kind) {
    case 'say':
      if (!leader.isConnected(step.stranger)) leader.connect(step.stranger);
      leader.packet(step.stranger, step.packet);
      return;
    case 'close':
      if (leader.isConnected(step.stranger)) leader.disconnect(step.stranger);
      return;
    case 'disk':
      leader.disk();
      return;
    case 'propose':
      if (leader.leader.phase === 'broadcast' && !leader.leader.isHandingOver) leader.propose(1);
      return;
    case 'wait':
      leader.disk();
      for (let left = step.ms; left > 0; left -= 100) {
        leader.advance(Math.min(left, 100), [1]);
        if (leader.isConnected(1)) leader.ack(1, `(${leader.leader.epoch},${leader.leader.lastProposed % 2 ** 32})`);
      }
      return;
  }
}
