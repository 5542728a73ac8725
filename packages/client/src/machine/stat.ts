import type { JuteReader } from '@meerkat/protocol';

/**
 * The metadata of a znode (the record Stat, 68 bytes on the wire).
 *
 * zxids and the session id are `bigint`s, so that no bits are lost, whatever the server. Times are milliseconds since
 * 1970 by the clock of the leader at the time of the change.
 */
export class Stat {
  /** zxid of the txn that created the znode. */
  readonly czxid: bigint;
  /** zxid of the txn that last changed its data. */
  readonly mzxid: bigint;
  /** zxid of the last change of its list of children. */
  readonly pzxid: bigint;
  /** When it was created, milliseconds. */
  readonly ctime: number;
  /** When its data last changed, milliseconds. */
  readonly mtime: number;
  /** Number of changes of the data; the version for a conditional set or delete. */
  readonly version: number;
  /** Number of changes of the list of children. */
  readonly cversion: number;
  /** Number of changes of the ACL. */
  readonly aversion: number;
  /** The session whose end removes the znode; 0n when it is not ephemeral. */
  readonly ephemeralOwner: bigint;
  /** Bytes. */
  readonly dataLength: number;
  readonly numChildren: number;

  constructor(reader: JuteReader) {
    this.czxid = reader.longBig();
    this.mzxid = reader.longBig();
    this.ctime = reader.longClamped();
    this.mtime = reader.longClamped();
    this.version = reader.int();
    this.cversion = reader.int();
    this.aversion = reader.int();
    this.ephemeralOwner = reader.longBig();
    this.dataLength = reader.int();
    this.numChildren = reader.int();
    this.pzxid = reader.longBig();
  }

  get isEphemeral(): boolean {
    return this.ephemeralOwner !== 0n;
  }

  /** `ctime` as a date. */
  get created(): Date {
    return new Date(this.ctime);
  }

  /** `mtime` as a date. */
  get modified(): Date {
    return new Date(this.mtime);
  }

  /** For `JSON.stringify`, which refuses bigints: zxids and the session id in hexadecimal, as ZooKeeper's tools print them. */
  toJSON(): StatJson {
    const { czxid, mzxid, pzxid, ephemeralOwner, ...numbers } = this;
    return {
      czxid: hex(czxid),
      mzxid: hex(mzxid),
      pzxid: hex(pzxid),
      ephemeralOwner: hex(ephemeralOwner),
      ...numbers,
    };
  }
}

/** A Stat as JSON. */
export interface StatJson {
  readonly czxid: string;
  readonly mzxid: string;
  readonly pzxid: string;
  readonly ephemeralOwner: string;
  /** Milliseconds since 1970. */
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly dataLength: number;
  readonly numChildren: number;
}

function hex(value: bigint): string {
  return `0x${BigInt.asUintN(64, value).toString(16)}`;
}
