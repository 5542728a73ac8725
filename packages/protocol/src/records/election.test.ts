import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { type ByteList, bytesOf } from '../testing/byte-list.ts';
import type { Zxid } from '../zxid.ts';
import {
  type ElectionNotification,
  readElectionNotification,
  ServerState,
  VOTE_NONE,
  writeElectionNotification,
  ZXID_VOTE_NONE,
} from './election.ts';

const CONFIG = 'server.1=host:2888:3888:participant;0.0.0.0:2181\nversion=100000000';
const NOTIFICATION: ElectionNotification = {
  state: ServerState.leading,
  leader: 3,
  zxid: 0x200000005 as Zxid,
  electionEpoch: 7,
  peerEpoch: 2,
  version: 2,
  configText: CONFIG,
  announces: 0,
};

const vote = (b: ByteList) => b.int(2).long(3).long(0x200000005).long(7);
const read = (build: (list: ByteList) => ByteList) => readElectionNotification(new JuteReader(bytesOf(build)));

function write(notification: ElectionNotification): Uint8Array {
  const writer = new JuteWriter(1);
  writeElectionNotification(writer, notification);
  return writer.toBytes();
}

describe('a notification', () => {
  test('has a vote, a version and the text of the membership', () => {
    const build = (b: ByteList) => vote(b).long(2).int(2).text(CONFIG);
    expect(read(build)).toEqual(NOTIFICATION);
    expect(write(NOTIFICATION)).toEqual(bytesOf(build));
  });

  test('of ours ends with the announcement of its sender', () => {
    const build = (b: ByteList) => vote(b).long(2).int(2).text(CONFIG).int(0x4d4b4154).int(1);
    expect(read(build)).toEqual({ ...NOTIFICATION, announces: 1 });
    expect(write({ ...NOTIFICATION, announces: 1 })).toEqual(bytesOf(build));
  });

  test('is read without trailing bytes that are no announcement of ours, or an incomplete one', () => {
    const whole = (b: ByteList) => vote(b).long(2).int(2).text(CONFIG);
    for (const tail of [[1], [0x4d, 0x4b, 0x41, 0x54, 0, 0, 1], [0x4d, 0x4b, 0x41, 0x55, 0, 0, 0, 1]]) {
      expect(read((b) => whole(b).raw(tail))).toEqual(NOTIFICATION);
    }
  });

  test('may have an empty config, and a later version than ours', () => {
    expect(read((b) => vote(b).long(2).int(3).text(''))).toEqual({ ...NOTIFICATION, version: 3, configText: '' });
  });

  test('of 40 bytes has no config, and version 0 regardless of its content', () => {
    const expected = { ...NOTIFICATION, version: 0, configText: null };
    for (const version of [0, 1, 2, -1]) expect(read((b) => vote(b).long(2).int(version))).toEqual(expected);
    expect(write({ ...NOTIFICATION, version: 1, configText: null })).toEqual(bytesOf((b) => vote(b).long(2).int(1)));
  });

  test('of 28 bytes has the epoch of its zxid', () => {
    expect(read(vote)).toEqual({ ...NOTIFICATION, peerEpoch: 2, version: 0, configText: null });
  });

  test('of another length and a version before the config is read without trailing bytes', () => {
    expect(read((b) => vote(b).long(4).int(1).byte(9))).toEqual({
      ...NOTIFICATION,
      peerEpoch: 4,
      version: 1,
      configText: null,
    });
  });

  test('of a looking observer is less than any vote in every field', () => {
    const observer: ElectionNotification = {
      ...NOTIFICATION,
      state: ServerState.looking,
      leader: VOTE_NONE,
      zxid: ZXID_VOTE_NONE,
      electionEpoch: 1,
      peerEpoch: VOTE_NONE,
      configText: '',
    };
    const min = -(2n ** 63n);
    const build = (b: ByteList) => b.int(0).long(min).long(min).long(1).long(min).int(2).text('');
    expect(read(build)).toEqual(observer);
    expect(write(observer)).toEqual(bytesOf(build));
    expect(VOTE_NONE).toBeLessThan(Number.MIN_SAFE_INTEGER);
  });

  test('of a server that does not trust its data has zxid −1', () => {
    expect(read((b) => b.int(0).long(1).long(-1).long(1).long(0).int(2).text(''))).toMatchObject({ zxid: -1 });
  });
});

describe('an invalid notification', () => {
  test('is too short for its version', () => {
    const bytes = bytesOf((b) => vote(b).long(2).int(2).text(CONFIG));
    for (let length = 0; length < bytes.length; length++) {
      if (length === 28 || length === 40) continue;
      expect(readElectionNotification(new JuteReader(bytes.subarray(0, length))), `${length} bytes`).toBeNull();
    }
  });

  test('has an unknown state', () => {
    for (const state of [-1, 4, 2 ** 31 - 1]) {
      expect(read((b) => b.int(state).long(3).long(5).long(7).long(2).int(2).text(''))).toBeNull();
    }
  });

  test('has a config shorter than its length', () => {
    for (const length of [-1, -2, 1, 2 ** 31 - 1]) expect(read((b) => vote(b).long(2).int(2).int(length))).toBeNull();
  });

  test('has inexact numbers or a negative zxid', () => {
    const fields = [3n, 5n, 7n, 2n];
    for (const [at, value] of [
      [0, 2n ** 53n],
      [1, 2n ** 53n],
      [2, 2n ** 53n],
      [3, 2n ** 53n],
      [1, -2n],
      [2, -(2n ** 63n)],
      [0, -(2n ** 63n) + 1n],
    ] as const) {
      const [leader, zxid, electionEpoch, peerEpoch] = fields.with(at, value) as [bigint, bigint, bigint, bigint];
      expect(
        read((b) => b.int(0).long(leader).long(zxid).long(electionEpoch).long(peerEpoch).int(2).text('')),
        `${value} in place ${at}`,
      ).toBeNull();
    }
  });
});
