import { type LeaderPacket, type LearnerPacket, makeZxid, PacketType, type UnknownPacket } from '@meerkat/protocol';
import { Turn } from '../base/turn.ts';
import { LeaderLink } from '../links/leader-link.ts';
import { LearnerLink } from '../links/learner-link.ts';
import type { LinkHost } from '../links/link-host.ts';
import { Database } from '../tree/database.ts';
import { MemoryNetwork, type MemoryNetworkOptions, type MemoryStream } from './memory-network.ts';
import { StubStream } from './stub-stream.ts';

const TRACE = { emit() {} };
export const makeDatabase = () => new Database({ extendedTypesEnabled: true, digestEnabled: true }, TRACE);

/** A server from the viewpoint of its links; the test ends its turns. */
export class TestLinkHost implements LinkHost {
  readonly trace = TRACE;
  readonly fieldBytesMax = 1 << 21;
  readonly turn = new Turn({ monotonicMs: () => 0, wallMs: () => 0 });

  endTurn(): void {
    this.turn.runDeferred();
    this.turn.flushLinks();
    this.turn.end();
  }
}

/** What one end has received, in order. */
type LinkEvent =
  | { readonly packet: LeaderPacket | LearnerPacket }
  | { readonly database: Database }
  | { readonly closed: string }
  | 'room'
  | 'progress';

export class LinkPair {
  readonly network: MemoryNetwork;
  readonly host = new TestLinkHost();
  readonly atLeader: LinkEvent[] = [];
  readonly atLearner: LinkEvent[] = [];
  readonly learnerLink: LearnerLink;
  readonly leaderLink: LeaderLink;
  readonly streams: readonly [MemoryStream, MemoryStream];
  /** Called after each packet that the learner receives. */
  onPacketAtLearner: (packet: LeaderPacket) => void = () => {};

  constructor(seed = 1, options: Partial<MemoryNetworkOptions> = {}) {
    this.network = new MemoryNetwork(seed, options);
    const [learner, leader] = this.network.makePair('learner', { host: 'leader', port: 2888 });
    this.streams = [learner, leader];
    this.leaderLink = new LeaderLink(learner, this.host, makeDatabase, {
      onPacket: (packet) => {
        this.atLearner.push({ packet });
        this.onPacketAtLearner(packet);
      },
      onSnapshot: (database) => this.atLearner.push({ database }),
      onLinkClosed: (closed) => this.atLearner.push({ closed }),
    });
    this.learnerLink = new LearnerLink(leader, this.host, {
      onPacket: (packet) => this.atLeader.push({ packet }),
      onRoom: () => this.atLeader.push('room'),
      onProgress: () => this.atLeader.push('progress'),
      onLinkClosed: (closed) => this.atLeader.push({ closed }),
    });
    learner.open(this.leaderLink);
    leader.open(this.learnerLink);
  }

  /** @returns false when nothing is in flight */
  step(): boolean {
    this.host.endTurn();
    return this.network.step();
  }

  run(): void {
    while (this.step());
  }

  get packetsAtLearner(): readonly LeaderPacket[] {
    return this.atLearner.flatMap((event) =>
      typeof event === 'object' && 'packet' in event ? [event.packet as LeaderPacket] : [],
    );
  }

  get packetsAtLeader(): readonly LearnerPacket[] {
    return this.atLeader.flatMap((event) =>
      typeof event === 'object' && 'packet' in event ? [event.packet as LearnerPacket] : [],
    );
  }
}

export function stubbedLearnerLink(): { stream: StubStream; host: TestLinkHost; calls: string[]; link: LearnerLink } {
  const stream = new StubStream();
  const host = new TestLinkHost();
  const calls: string[] = [];
  const link = new LearnerLink(stream, host, {
    onPacket: () => calls.push('packet'),
    onRoom: () => calls.push('room'),
    onProgress: () => calls.push('progress'),
    onLinkClosed: (reason) => calls.push(reason),
  });
  return { stream, host, calls, link };
}

export const commitOf = (counter: number): Exclude<LeaderPacket, UnknownPacket> => ({
  type: PacketType.commit,
  zxid: makeZxid(1, counter),
});
export const zxidsOf = (packets: readonly LeaderPacket[]) =>
  packets.map((packet) => ('zxid' in packet ? packet.zxid : null));
