import { Announcement, makeZxid, OpCode, PacketType } from '@meerkat/protocol';
import type { LeaderShape } from './leader-shape.ts';
import { TestLeader } from './test-leader.ts';

/**
 * Plays a scenario of a leader: blocks of commands, each followed by `----` and the leader's output. The learners are
 * scripted; the leader is the code under test.
 *
 *     voters 1 2 3                                  the ensemble; this and the next come first
 *     leader 3 (1,1)..(1,5) epoch=1 accepted=1      the elected server, with its history and epochs
 *       memory=2 log=(1,3)                          … of which 2 txns are in memory, and the log begins with (1,3)
 *       epoch-txns=1000                             … and the number of txns after which an epoch ends
 *
 *     quietly                        no output for the rest of this block
 *     start                          the election is over
 *     connect 2 / disconnect 2       learner 2 opens its connection / closes it
 *     2 FOLLOWERINFO accepted=1      it sends this; also OBSERVERINFO; `ours` if it announces that it accepts HANDOVER,
 *                                    `apache` if it announces nothing
 *     2 ACKEPOCH (1,5) epoch=1
 *     2 ACK (2,0)
 *     2 PING
 *     2 REQUEST session=7 cxid=1
 *     2 SYNC                         a client of learner 2 asks for a sync
 *     join 2 (1,5)                   all of these, up to ACK of NEWLEADER
 *     narrow 2 / room 2              what is sent to learner 2 stays queued / has been sent
 *     disk                           all requests to the disk are completed and durable
 *     propose 3                      three txns
 *     sync                           a client asks for a sync
 *     advance 1000 alive 1 2         time passes, in milliseconds; these learners answer each ping
 *     hand-over                      the leader is asked to hand over its leadership
 *
 * Output:
 *
 *     3 → 1 2   PROPOSAL (2,1)       sent, to each of them
 *     3         committed (2,1)      reported to its host; `committed` lets it apply and answer
 */
export function playZabLeader(text: string): string {
  const player = new Player();
  const blocks = text
    .trim()
    .split(/\n\n+/)
    .map((block) => block.split(/\n?^----$/m)[0]!);
  const played = blocks.map((commands) => [commands, '----', ...player.playAll(commands.split('\n'))].join('\n'));
  return `${played.join('\n\n')}\n`;
}

const WIDTH = 12;

class Player {
  #voters: readonly number[] = [];
  #test: TestLeader | null = null;

  playAll(lines: readonly string[]): readonly string[] {
    const said: string[] = [];
    let isQuiet = false;
    for (const line of lines) {
      if (line.startsWith('#')) continue;
      const [word, ...rest] = line.trim().split(/\s+/) as [string, ...string[]];
      if (word === 'quietly') isQuiet = true;
      else this.#play(word, rest);
      const lines = this.#takeSaid();
      if (!isQuiet) said.push(...lines);
    }
    return said;
  }

  #play(word: string, rest: readonly string[]): void {
    const [first = ''] = rest;
    switch (word) {
      case 'voters':
        this.#voters = rest.map(Number);
        return;
      case 'leader':
        this.#test = new TestLeader(this.#parseLeader(rest));
        return;
      case 'start':
        this.#leader.start();
        return;
      case 'connect':
        this.#leader.connect(Number(first));
        return;
      case 'disconnect':
        this.#leader.disconnect(Number(first));
        return;
      case 'join':
        this.#leader.join(Number(first), rest[1], { announces: announcesOf(rest) });
        return;
      case 'narrow':
        this.#leader.narrow.add(Number(first));
        return;
      case 'room':
        this.#leader.room(Number(first));
        return;
      case 'disk':
        this.#leader.disk();
        return;
      case 'propose':
        this.#leader.propose(Number(first));
        return;
      case 'sync':
        this.#leader.sync();
        return;
      case 'advance':
        this.#leader.advance(Number(first), rest.slice(2).map(Number));
        return;
      case 'hand-over':
        this.#leader.handOver();
        return;
      default:
        if (!/^\d+$/.test(word)) throw new Error(`a scenario of a leader has no command "${word}"`);
        this.#playPacket(Number(word), first, rest.slice(1));
    }
  }

  #playPacket(learner: number, name: string, rest: readonly string[]): void {
    switch (name) {
      case 'FOLLOWERINFO':
      case 'OBSERVERINFO': {
        const type = name === 'FOLLOWERINFO' ? PacketType.followerInfo : PacketType.observerInfo;
        const configVersion = makeZxid(0, Number(optionOf(rest, 'config') ?? 0));
        const announces = announcesOf(rest);
        this.#leader.info(learner, Number(optionOf(rest, 'accepted') ?? 1), { type, configVersion, announces });
        return;
      }
      case 'ACKEPOCH':
        this.#leader.ackEpoch(learner, rest[0]!, Number(optionOf(rest, 'epoch') ?? 1));
        return;
      case 'ACK':
        this.#leader.ack(learner, rest[0]!);
        return;
      case 'PING':
        this.#leader.pong(learner);
        return;
      case 'SYNC':
        this.#leader.syncOf(learner);
        return;
      case 'REQUEST': {
        const sessionId = BigInt(optionOf(rest, 'session') ?? 7);
        const cxid = Number(optionOf(rest, 'cxid') ?? 1);
        const body = new Uint8Array(0);
        this.#leader.packet(learner, {
          type: PacketType.request,
          sessionId,
          cxid,
          op: OpCode.create,
          body,
          authInfo: [],
        });
        return;
      }
      default:
        throw new Error(`a learner does not say "${name}"`);
    }
  }

  #parseLeader([id, ...rest]: readonly string[]): Partial<LeaderShape> {
    const history = rest.filter((part) => part.startsWith('(')).join(' ');
    const epochTxnsMax = Number(optionOf(rest, 'epoch-txns') ?? 1_000_000);
    return {
      serverId: Number(id),
      quorum: { voters: this.#voters },
      history,
      memory: Number(optionOf(rest, 'memory') ?? 100),
      logFrom: optionOf(rest, 'log') ?? null,
      currentEpoch: Number(optionOf(rest, 'epoch') ?? 1),
      acceptedEpoch: Number(optionOf(rest, 'accepted') ?? optionOf(rest, 'epoch') ?? 1),
      options: { epochTxnsMax },
    };
  }

  get #leader(): TestLeader {
    if (this.#test === null) throw new Error('a scenario says first who leads: leader 3 (1,1)..(1,5)');
    return this.#test;
  }

  /** The same packet to several learners becomes one line. */
  #takeSaid(): readonly string[] {
    const groups: { readonly to: number[]; readonly text: string }[] = [];
    for (const { to, text } of this.#test?.take() ?? []) {
      const last = groups.at(-1);
      if (last !== undefined && to !== null && last.text === text && last.to.length > 0 && !last.to.includes(to)) {
        last.to.push(to);
      } else {
        groups.push({ to: to === null ? [] : [to], text });
      }
    }
    const id = this.#test?.serverId;
    return groups.map(({ to, text }) => `${`${id}${to.length > 0 ? ` → ${to.join(' ')}` : ''}`.padEnd(WIDTH)}${text}`);
  }
}

function announcesOf(words: readonly string[]): number {
  if (words.includes('apache')) return 0;
  return Announcement.keepsLog + (words.includes('ours') ? Announcement.takesHandOver : 0);
}

function optionOf(words: readonly string[], name: string): string | undefined {
  return words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
}
