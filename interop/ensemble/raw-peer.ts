/** Connects to the ports between servers like a server, with hand-built packets. */
import { connect, type Socket } from 'node:net';
import { record } from '../harness/record-builder.ts';

const FOLLOWER_INFO = 11;
const OBSERVER_INFO = 16;
const PROTOCOL_VERSION = 0x10000;

export interface Pretence {
  readonly serverId: number;
  readonly acceptedEpoch: number;
}

/** A connection to a port of a server on which one message was sent. */
export class RawPeer {
  readonly #socket: Socket;
  readonly #closed: Promise<void>;
  #received = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
    });
    this.#closed = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  static async say(port: number, bytes: Uint8Array): Promise<RawPeer> {
    const socket = connect({ port, host: '127.0.0.1' });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    const peer = new RawPeer(socket);
    socket.write(bytes);
    return peer;
  }

  /** All bytes received from the server. */
  get received(): Buffer {
    return this.#received;
  }

  /** Resolves when the server has closed the connection. */
  get closed(): Promise<void> {
    return this.#closed;
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** The first packet of a follower. */
export function followerInfo(pretence: Pretence): Uint8Array {
  return learnerInfo(FOLLOWER_INFO, pretence);
}

/** The first packet of an observer. */
export function observerInfo(pretence: Pretence): Uint8Array {
  return learnerInfo(OBSERVER_INFO, pretence);
}

function learnerInfo(type: number, { serverId, acceptedEpoch }: Pretence): Uint8Array {
  const info = record().long(BigInt(serverId)).int(PROTOCOL_VERSION).long(0n).build();
  const zxid = BigInt(acceptedEpoch) << 32n;
  return record().int(type).long(zxid).buffer(info).int(-1).build();
}

export interface PretendedVote {
  readonly state: 'looking' | 'following' | 'leading';
  readonly leader: number;
  readonly zxid: bigint;
  readonly round: bigint;
  readonly peerEpoch: bigint;
}

const STATES = { looking: 0, following: 1, leading: 2 } as const;
const HELLO_VERSION = -65536n;
const NOTIFICATION_VERSION = 2;

/** The hello of a server with a higher id on another's election port, and an election notification. */
export function notification(serverId: number, vote: PretendedVote): Uint8Array {
  const payload = record()
    .int(STATES[vote.state])
    .long(BigInt(vote.leader))
    .long(vote.zxid)
    .long(vote.round)
    .long(vote.peerEpoch)
    .int(NOTIFICATION_VERSION)
    .ustring('version=0')
    .build();
  const hello = record().long(HELLO_VERSION).long(BigInt(serverId)).ustring('127.0.0.1:9').build();
  return record().raw(hello).buffer(payload).build();
}
