import { Announcement, type LearnerInfoPacket, PacketType } from '@meerkat/protocol';
import type { LeaderShape } from './leader-shape.ts';
import { TestLeader } from './test-leader.ts';

/** Announcements of learners, and an ensemble of five. */
export const OURS = { announces: Announcement.takesHandOver + Announcement.keepsLog };
export const APACHE = { announces: 0 };
export const OBSERVER: Partial<LearnerInfoPacket> = { type: PacketType.observerInfo };
export const FIVE = { quorum: { voters: [1, 2, 3, 4, 5] } };

/** Server 3 leads epoch 2 of three servers; its followers have joined. */
export function broadcasting(
  followers: readonly number[] = [1, 2],
  shape: Partial<LeaderShape> = {},
  info: Partial<LearnerInfoPacket> = {},
): TestLeader {
  return new TestLeader(shape).establish(followers, info);
}

/** What was sent to one learner. */
export function saidTo(test: TestLeader, learner: number): readonly string[] {
  return test.take().flatMap(({ to, text }) => (to === learner ? [text] : []));
}
