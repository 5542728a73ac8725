import { type ElectionNotification, makeZxid, ServerState } from '@meerkat/protocol';
import { type ByteList, bytesOf } from '../../../protocol/src/testing/byte-list.ts';

const CONFIG = 'version=0';

/** A notification that is identified by its round. */
export function makeNotification(round: number): ElectionNotification {
  return {
    state: ServerState.looking,
    leader: 3,
    zxid: makeZxid(1, 5),
    electionEpoch: round,
    peerEpoch: 1,
    version: 2,
    configText: CONFIG,
    announces: 0,
  };
}

/** The bytes of `makeNotification` in its frame: 44 bytes and the config. */
export function frameOf(round: number): (b: ByteList) => ByteList {
  return (b) => b.int(53).int(0).long(3).long(0x100000005).long(round).long(1).int(2).text(CONFIG);
}

export function helloOf(id: number | bigint, address: string): Uint8Array {
  return bytesOf((b) => b.long(-65536).long(id).text(address));
}
