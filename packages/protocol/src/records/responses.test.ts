import { expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { bytesOf } from '../testing/byte-list.ts';
import {
  EventType,
  REPLY_HEADER_BYTES,
  readReplyHeader,
  readWatcherEvent,
  SYNC_CONNECTED,
  writeClientInfos,
  writeReplyHeader,
  writeWatcherEvent,
} from './responses.ts';

test('a reply header is xid, zxid and error, 16 bytes', () => {
  for (const [xid, zxid, error] of [
    [7, 0x500000001, 0],
    [-2, 0, -101],
    [3, -1, -6],
  ] as const) {
    const writer = new JuteWriter(4);
    writeReplyHeader(writer, xid, zxid, error);
    const bytes = bytesOf((b) => b.int(xid).long(zxid).int(error));
    expect(writer.toBytes()).toEqual(bytes);
    expect(bytes).toHaveLength(REPLY_HEADER_BYTES);
    expect(readReplyHeader(new JuteReader(bytes))).toEqual({ xid, zxid, error });
  }
});

test('a watch event is type, state SyncConnected and path', () => {
  const writer = new JuteWriter();
  writeWatcherEvent(writer, EventType.nodeChildrenChanged, '/a');
  const bytes = bytesOf((b) => b.int(4).int(3).text('/a'));
  expect(writer.toBytes()).toEqual(bytes);
  expect(readWatcherEvent(new JuteReader(bytes))).toEqual({ type: 4, state: SYNC_CONNECTED, path: '/a' });
});

test('the types of events are those of the protocol', () => {
  expect(EventType).toEqual({
    none: -1,
    nodeCreated: 1,
    nodeDeleted: 2,
    nodeDataChanged: 3,
    nodeChildrenChanged: 4,
  });
});

test('the answer to whoAmI is a list of scheme and user', () => {
  const writer = new JuteWriter();
  writeClientInfos(writer, [
    { scheme: 'ip', user: '127.0.0.1' },
    { scheme: 'super', user: '' },
  ]);
  expect(writer.toBytes()).toEqual(bytesOf((b) => b.int(2).text('ip').text('127.0.0.1').text('super').text('')));
});
