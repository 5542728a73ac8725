import { describe, expect, it } from 'vitest';
import { ByteList } from '../../../protocol/src/testing/byte-list.ts';
import { bodyHash } from './body-hash.ts';
import { type WireEvent, WireTap } from './wire.ts';

/** Host `s1` has dialled `s2`; 2888 is the quorum port, 3888 the election port. */
function tapped(port: number): { tap: WireTap; events: WireEvent[] } {
  const events: WireEvent[] = [];
  const tap = new WireTap({
    portKind: (_host, at) => (at === 2888 ? 'quorum' : at === 3888 ? 'election' : null),
    serverOf: (host) => (host.startsWith('s') ? Number(host.slice(1)) : null),
    onEvent: (event) => events.push(event),
  });
  tap.onOpen(7, 's1', 's2', port);
  return { tap, events };
}

function packet(type: number, zxid: number, data: Uint8Array | null): Uint8Array {
  return new ByteList().int(type).long(zxid).buffer(data).int(-1).toBytes();
}

const ACK = packet(3, 5, null);
const COMMIT = packet(4, 5, null);

describe('the tap of the network', () => {
  it('tells a packet when it is written and again when it has arrived', () => {
    const { tap, events } = tapped(2888);
    tap.onBytes(7, 's1', 'sent', ACK);
    expect(events).toMatchObject([
      { kind: 'learner-packet', stage: 'sent', from: 1, to: 2, packet: { type: 3, zxid: 5 } },
    ]);
    tap.onBytes(7, 's1', 'received', ACK.subarray(0, 10));
    expect(events).toHaveLength(1);
    tap.onBytes(7, 's1', 'received', ACK.subarray(10));
    expect(events[1]).toMatchObject({ kind: 'learner-packet', stage: 'received', packet: { type: 3, zxid: 5 } });
  });

  it('reads both directions, each as what it is', () => {
    const { tap, events } = tapped(2888);
    tap.onBytes(7, 's2', 'sent', COMMIT);
    expect(events).toMatchObject([{ kind: 'leader-packet', from: 2, to: 1, packet: { type: 4, zxid: 5 } }]);
  });

  it('finds packets however they are split', () => {
    const { tap, events } = tapped(2888);
    const bytes = new ByteList().raw(COMMIT).raw(COMMIT).raw(COMMIT).toBytes();
    for (const byte of bytes) tap.onBytes(7, 's2', 'sent', Uint8Array.of(byte));
    expect(events).toHaveLength(3);
    tap.onBytes(7, 's2', 'received', bytes.subarray(0, 45));
    expect(events).toHaveLength(5);
  });

  it('tells a proposal with the hash of its payload', () => {
    const { tap, events } = tapped(2888);
    const payload = new ByteList().long(1).int(2).long(9).long(1000).int(-1).int(-101).toBytes();
    tap.onBytes(7, 's2', 'sent', packet(2, 9, payload));
    expect(events).toMatchObject([{ packet: { type: 2 }, hash: bodyHash(payload) }]);
    payload[31] = 0;
    expect(bodyHash(payload)).not.toBe(events[0]?.kind === 'leader-packet' ? events[0].hash : 0);
  });

  it('passes over the snapshot behind SNAP', () => {
    const { tap, events } = tapped(2888);
    const stat = new Uint8Array(60);
    const snapshot = new ByteList()
      .int(1)
      .long(77)
      .int(4000)
      .int(1)
      .long(1)
      .acl([31, 'world', 'anyone'])
      .text('')
      .buffer(null)
      .long(1)
      .raw(stat)
      .text('/a')
      .buffer([1, 2, 3])
      .long(1)
      .raw(stat)
      .text('/')
      .text('BenWasHere')
      .toBytes();
    const bytes = new ByteList()
      .raw(packet(15, 5, null))
      .raw(snapshot)
      .raw(COMMIT)
      .toBytes();
    for (let at = 0; at < bytes.length; at += 7) tap.onBytes(7, 's2', 'sent', bytes.subarray(at, at + 7));
    expect(events).toMatchObject([{ packet: { type: 15 } }, { packet: { type: 4 } }]);
  });

  it('reads notifications behind the hello of the dialling server', () => {
    const { tap, events } = tapped(3888);
    const address = 's1:3888';
    const hello = new ByteList().long(-65536).long(1).text(address).toBytes();
    const vote = new ByteList().int(0).long(3).long(9).long(4).long(2).int(2).text('').toBytes();
    const frame = new ByteList().buffer(vote).toBytes();
    tap.onBytes(7, 's1', 'sent', hello);
    tap.onBytes(7, 's1', 'sent', frame.subarray(0, 9));
    tap.onBytes(7, 's1', 'sent', frame.subarray(9));
    tap.onBytes(7, 's2', 'sent', frame);
    const notification = { state: 0, leader: 3, zxid: 9, electionEpoch: 4, peerEpoch: 2 };
    expect(events).toMatchObject([
      { kind: 'notification', from: 1, to: 2, notification },
      { kind: 'notification', from: 2, to: 1, notification },
    ]);
  });

  it('says when bytes are no packet, once', () => {
    const { tap, events } = tapped(2888);
    tap.onBytes(7, 's2', 'sent', new ByteList().int(4).long(5).int(-7).int(-1).toBytes());
    tap.onBytes(7, 's2', 'sent', COMMIT);
    expect(events).toMatchObject([{ kind: 'garbage', from: 2, to: 1 }]);
  });

  it('tells the end of a connection, and nothing that was still on its way', () => {
    const { tap, events } = tapped(2888);
    tap.onBytes(7, 's1', 'sent', ACK);
    tap.onClose(7);
    tap.onBytes(7, 's1', 'received', ACK);
    expect(events.map(({ kind }) => kind)).toEqual(['learner-packet', 'closed']);
  });

  it('does not look at clients', () => {
    const { tap, events } = tapped(2181);
    tap.onBytes(7, 's1', 'sent', ACK);
    tap.onClose(7);
    expect(events).toEqual([]);
  });
});
