import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { readConnectRequest, readConnectResponse, writeConnectRequest, writeConnectResponse } from './connect.ts';
import { readPersistedStat, readStat, writePersistedStat, writeStat } from './data.ts';
import { readRequest, writeRequest } from './requests.ts';
import { EventType, readReplyHeader, readWatcherEvent, writeReplyHeader, writeWatcherEvent } from './responses.ts';
import { readTxnEntry, writeTxn, writeTxnDigest } from './txn.ts';

const RECORDS = readFileSync(new URL('apache-records.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .filter((line) => !line.startsWith('#'))
  .map((line) => line.split(' ') as [name: string, hex: string]);

test.each(RECORDS)("Apache's %s is read, and written again byte for byte", (name, hex) => {
  const reader = new JuteReader(Uint8Array.from(Buffer.from(hex, 'hex')));
  const writer = new JuteWriter(1);
  readAndWrite(name, reader, writer);
  expect(reader.failed).toBe(false);
  expect(reader.remaining).toBe(0);
  expect(Buffer.from(writer.toBytes()).toString('hex')).toBe(hex);
});

function readAndWrite(name: string, reader: JuteReader, writer: JuteWriter): void {
  if (name.endsWith('Txn')) {
    const entry = readTxnEntry(reader);
    if (entry?.digest == null) throw new Error('this is no txn with a digest');
    writeTxn(writer, entry.header, entry.txn);
    writeTxnDigest(writer, entry.digest.version, entry.digest.treeDigest);
    return;
  }
  switch (name) {
    case 'connectRequest':
      writeConnectRequest(writer, readConnectRequest(reader));
      return;
    case 'connectResponse':
      writeConnectResponse(writer, readConnectResponse(reader));
      return;
    case 'stat':
      writeStat(writer, readStat(reader));
      return;
    case 'statPersisted':
      writePersistedStat(writer, readPersistedStat(reader));
      return;
    case 'replyHeader': {
      const { xid, zxid, error } = readReplyHeader(reader);
      writeReplyHeader(writer, xid, zxid, error);
      return;
    }
    case 'watcherEvent':
      expect(EventType.nodeChildrenChanged).toBe(4);
      writeWatcherEvent(writer, EventType.nodeChildrenChanged, readWatcherEvent(reader).path);
      return;
    default: {
      const request = readRequest(OpCode[name as keyof typeof OpCode], reader);
      if (request === null) throw new Error('this is no request');
      writeRequest(writer, request);
      return;
    }
  }
}
