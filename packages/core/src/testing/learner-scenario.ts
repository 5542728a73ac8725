import {
  Announcement,
  hexZxid,
  type LeaderPacket,
  makeZxid,
  PacketType,
  parseZxid,
  QUORUM_PROTOCOL_VERSION,
  type Zxid,
} from '@meerkat/protocol';
import {
  type Asked,
  commit,
  inform,
  leaderInfo,
  makeEntry,
  newLeader,
  proposal,
  type Sent,
  TestLearner,
} from './test-learner.ts';

/**
 * Plays a scenario of a learner: blocks of commands, each followed by `----` and the resulting output. There is one
 * server; the scenario plays its leader and its disk.
 *
 *     follower log=0x100000001..0x100000005 epoch=1       the server and the log on its disk; `epoch` is the one that it
 *     observer snapshot=0x100000005 epoch=1 no-log        accepted and adopted (`accepted`: a later promise)
 *
 *     connect                      the link to the leader is established
 *     PROPOSAL 0x100000006         the leader's packet arrives; several zxids: one packet each
 *     LEADERINFO epoch=2           … of an Apache leader; with `ours`, of one of ours
 *     snapshot                     the snapshot announced by SNAP has arrived completely
 *     disk                         the disk completes all requests; `disk 1` only the first one
 *     advance 4000                 time passes, in milliseconds
 *     cut                          the link breaks
 *     restart                      the server restarts, with what was durable
 *
 * Output:
 *
 *     → leader    ACKEPOCH …       sent
 *     asks        …                requested from the disk
 *     disk        …                completed by the disk, and so durable
 *     committed   0x100000006      may be applied
 *     …
 */
export function playLearner(text: string): string {
  const player = new Player();
  const blocks = text
    .trim()
    .split(/\n\n+/)
    .map((block) => block.split(/\n?^----$/m)[0]!);
  const played = blocks.map((commands) => [commands, '----', ...player.playAll(commands.split('\n'))].join('\n'));
  return `${played.join('\n\n')}\n`;
}

class Player {
  #one: TestLearner | null = null;
  #said: string[] = [];

  playAll(lines: readonly string[]): readonly string[] {
    this.#said = [];
    for (const line of lines) if (!line.startsWith('#')) this.#play(line.trim().split(/\s+/) as [string, ...string[]]);
    return this.#said;
  }

  #play([word, ...rest]: [string, ...string[]]): void {
    switch (word) {
      case 'follower':
      case 'observer':
        this.#one = makeServer(word, rest);
        this.#one.onAsked = (asked) => {
          const said = formatAsked(asked);
          if (said !== null) this.#say(...said);
        };
        return;
      case 'connect':
        this.#server.learner.onConnected();
        return;
      case 'snapshot':
        this.#server.snapshotArrives();
        return;
      case 'disk':
        this.#playDisk(rest[0] === undefined ? Number.POSITIVE_INFINITY : Number(rest[0]));
        return;
      case 'advance':
        this.#server.advance(Number(rest[0]));
        return;
      case 'cut':
        this.#server.learner.onLinkClosed('closed by peer');
        return;
      case 'restart': {
        this.#server.restart();
        const { lastZxid, currentEpoch, acceptedEpoch } = this.#server.disk.recover();
        this.#say(
          'disk',
          `ends with ${hexZxid(lastZxid)}, currentEpoch ${currentEpoch}, acceptedEpoch ${acceptedEpoch}`,
        );
        return;
      }
      default:
        this.#server.receive(...parsePackets(word, rest));
    }
  }

  #playDisk(count: number): void {
    const one = this.#server;
    for (let i = 0; i < count && !one.disk.isIdle; i++) {
      const { change, unsynced, epochWrites } = one.disk;
      if (change !== null) this.#say('disk', `${change.what}, ends with ${hexZxid(change.log.at(-1) ?? change.base)}`);
      else if (unsynced.length > 0) this.#say('disk', `log up to ${hexZxid(unsynced.at(-1)!)}`);
      else this.#say('disk', `${epochWrites[0]!.name} ${epochWrites[0]!.epoch}`);
      one.diskDoesOne();
    }
  }

  get #server(): TestLearner {
    if (this.#one === null) throw new Error('a scenario of a learner begins with "follower" or "observer"');
    return this.#one;
  }

  #say(what: string, text: string): void {
    this.#said.push(`${what.padEnd(WIDTH)}${text}`.trimEnd());
  }
}

const WIDTH = 12;
/** What leaders announce. */
const OURS: number = Announcement.takesHandOver;
const APACHE = 0;

function makeServer(kind: 'follower' | 'observer', rest: readonly string[]): TestLearner {
  const epoch = Number(optionOf(rest, 'epoch') ?? 0);
  const [first, last] = (optionOf(rest, 'log') ?? '').split('..').map((zxid) => parseHex(zxid));
  const log: Zxid[] = [];
  if (first !== undefined && last !== undefined) for (let z = first; z <= last; z = (z + 1) as Zxid) log.push(z);
  return new TestLearner({
    kind,
    log,
    lastZxid: parseHex(optionOf(rest, 'snapshot') ?? '0x0'),
    currentEpoch: epoch,
    acceptedEpoch: Number(optionOf(rest, 'accepted') ?? epoch),
    logsInforms: !rest.includes('no-log'),
  });
}

function parsePackets(word: string, rest: readonly string[]): readonly LeaderPacket[] {
  const zxids = rest.filter((part) => part.startsWith('0x')).map(parseHex);
  const epoch = Number(optionOf(rest, 'epoch'));
  const version = optionOf(rest, 'version');
  switch (word) {
    case 'LEADERINFO':
      return [leaderInfo(epoch, Number(version ?? QUORUM_PROTOCOL_VERSION), rest.includes('ours') ? OURS : APACHE)];
    case 'DIFF':
      return zxids.map((zxid) => ({ type: PacketType.diff, zxid }));
    case 'TRUNC':
      return zxids.map((zxid) => ({ type: PacketType.trunc, zxid }));
    case 'SNAP':
      return zxids.map((zxid) => ({ type: PacketType.snap, zxid }));
    case 'PROPOSAL':
      return zxids.map(proposal);
    case 'COMMIT':
      return zxids.map(commit);
    case 'INFORM':
      return zxids.map(inform);
    case 'COMMITANDACTIVATE':
      return zxids.map((zxid) => ({ type: PacketType.commitAndActivate, zxid, designatedLeader: 1 }));
    case 'INFORMANDACTIVATE':
      return zxids.map((zxid) => ({
        type: PacketType.informAndActivate,
        designatedLeader: 1,
        entry: makeEntry(zxid),
        payload: new Uint8Array(),
      }));
    case 'NEWLEADER':
      return [newLeader(epoch)];
    case 'UPTODATE':
      return [{ type: PacketType.upToDate }];
    case 'PING':
      return zxids.map((zxid) => ({ type: PacketType.ping, zxid }));
    case 'SYNC':
      return [{ type: PacketType.sync }];
    case 'REVALIDATE':
      return [{ type: PacketType.revalidate, sessionId: BigInt(rest[0]!), isValid: rest[1] === 'lives' }];
    case 'HANDOVER':
      return zxids.map((zxid) => ({ type: PacketType.handOver, zxid }));
    default:
      throw new Error(`a scenario of a learner has no command "${word}"`);
  }
}

/** Name and details of a request. @returns null for those shown elsewhere: what is appended was shown as proposed */
function formatAsked(asked: Asked): [string, string] | null {
  switch (asked.kind) {
    case 'send':
      return ['→ leader', formatSent(asked.packet)];
    case 'append':
      return ['asks', `append ${hexZxid(asked.zxid)}`];
    case 'proposed':
      return null;
    case 'truncate':
      return ['asks', `truncate behind ${hexZxid(asked.zxid)}`];
    case 'write':
      return ['asks', `write ${asked.name} ${asked.epoch}`];
    case 'keep':
      return ['asks', 'keep the history'];
    case 'install':
      return ['asks', 'install the snapshot'];
    case 'pause':
      return ['link', 'paused'];
    case 'resume':
      return ['link', 'resumed'];
    case 'committed':
      return ['committed', hexZxid(asked.zxid)];
    case 'serve':
      return ['serves', `in epoch ${asked.epoch}`];
    case 'filled':
      return ['fills', `${hexZxid(asked.first)} to ${hexZxid(asked.last)}`];
    case 'synced':
      return ['synced', `${asked.count}`];
    case 'pinged':
      return ['→ leader', `PING ${hexZxid(asked.zxid)}`];
    case 'membership':
      return ['membership', `${asked.what}${asked.zxid === null ? '' : ` ${hexZxid(asked.zxid)}`}`];
    case 'revalidated':
      return ['session', `0x${asked.sessionId.toString(16)} ${asked.isValid ? 'lives' : 'is gone'}`];
    case 'handed-over':
      return ['successor', 'of its leader'];
    case 'stop':
      return ['stops', asked.reason];
  }
}

function formatSent(packet: Sent): string {
  switch (packet.type) {
    case PacketType.followerInfo:
    case PacketType.observerInfo: {
      const name = packet.type === PacketType.followerInfo ? 'FOLLOWERINFO' : 'OBSERVERINFO';
      return `${name} acceptedEpoch=${packet.zxid / makeZxid(1, 0)}`;
    }
    case PacketType.ackEpoch:
      return `ACKEPOCH ${hexZxid(packet.zxid)} currentEpoch=${packet.currentEpoch}`;
    case PacketType.ack:
      return `ACK ${hexZxid(packet.zxid)}`;
    default:
      return `packet ${packet.type}`;
  }
}

function parseHex(text: string): Zxid {
  const zxid = parseZxid(text.slice(2));
  if (zxid === null && text !== '') throw new Error(`${text} is no zxid`);
  return zxid ?? (0 as Zxid);
}

function optionOf(words: readonly string[], name: string): string | undefined {
  return words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
}
