import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { type ByteList, bytesOf } from '../testing/byte-list.ts';
import {
  HELLO_ADDRESS_BYTES_MAX,
  HelloVersion,
  measureElectionHello,
  readElectionHello,
  writeElectionHello,
} from './election-hello.ts';

const A = { host: 'zoo1', port: 3888 };
const B = { host: '0:0:0:0:0:0:0:1', port: 3889 };

const read = (build: (list: ByteList) => ByteList) => readElectionHello(new JuteReader(bytesOf(build)));
const readAddresses = (text: string) => read((b) => b.long(-65535).long(3).text(text))?.addresses;

describe('a hello', () => {
  test('has the id of the dialling server and one address', () => {
    const build = (b: ByteList) => b.long(-65536).long(3).text('zoo1:3888');
    const hello = { version: HelloVersion.singleAddress, serverId: 3, addresses: [A] };
    expect(read(build)).toEqual(hello);
    const writer = new JuteWriter(1);
    writeElectionHello(writer, { ...hello, addresses: [A, B] });
    expect(writer.toBytes()).toEqual(bytesOf(build));
  });

  test('has several addresses in its second version, an IPv6 literal in brackets', () => {
    const build = (b: ByteList) => b.long(-65535).long(3).text('zoo1:3888|[0:0:0:0:0:0:0:1]:3889');
    const hello = { version: HelloVersion.multipleAddresses, serverId: 3, addresses: [A, B] };
    expect(read(build)).toEqual(hello);
    const writer = new JuteWriter(1);
    writeElectionHello(writer, hello);
    expect(writer.toBytes()).toEqual(bytesOf(build));
  });

  test('has no more addresses than a reader accepts', () => {
    const addresses = Array.from({ length: 100 }, (_, i) => ({
      host: `zoo-${i}.${'x'.repeat(20)}.example`,
      port: 3888,
    }));
    const hello = { version: HelloVersion.multipleAddresses, serverId: 3, addresses };
    const writer = new JuteWriter();
    writeElectionHello(writer, hello);
    const bytes = writer.toBytes();
    expect(measureElectionHello(bytes, 0, bytes.length)).toBe(bytes.length);
    const parsed = readElectionHello(new JuteReader(bytes))?.addresses ?? [];
    expect(parsed.length).toBeGreaterThan(40);
    expect(parsed).toEqual(addresses.slice(0, parsed.length));
  });

  test.each([
    ['fills the limit', 2048, 2],
    ['exceeds it by one byte', 2049, 1],
  ])('has a last address that %s: %i bytes, %i addresses', (_, bytes, count) => {
    // 9 bytes for zoo1:3888, and a separator; 5 for the port.
    const addresses = [A, { host: 'x'.repeat(bytes - 9 - 1 - 5), port: 3888 }];
    const writer = new JuteWriter();
    writeElectionHello(writer, { version: HelloVersion.multipleAddresses, serverId: 3, addresses });
    expect(readElectionHello(new JuteReader(writer.toBytes()))?.addresses).toEqual(addresses.slice(0, count));
  });

  test('from before 3.5 is the id alone', () => {
    expect(read((b) => b.long(3))).toEqual({ version: null, serverId: 3, addresses: [] });
  });

  test('of an observer that does not send its id has none', () => {
    expect(read((b) => b.long(2n ** 63n - 1n))).toEqual({ version: null, serverId: null, addresses: [] });
    expect(
      read((b) =>
        b
          .long(-65536)
          .long(2n ** 63n - 1n)
          .text('a:1'),
      ),
    ).toMatchObject({ serverId: null });
  });

  test('drops wildcard addresses, which cannot be dialled back', () => {
    expect(readAddresses('0.0.0.0:1|a:2|[::]:3|[0:0:0:0:0:0:0:0]:4')).toEqual([{ host: 'a', port: 2 }]);
    expect(readAddresses('0.0.0.0:1')).toEqual([]);
  });
});

describe('an invalid hello', () => {
  test('has an unknown version', () => {
    for (const version of [-1, -65537, -65534, -(2n ** 63n)]) {
      const build = (b: ByteList) => b.long(version).long(3).text('zoo1:3888');
      expect(read(build)).toBeNull();
      expect(measureElectionHello(bytesOf(build), 0, 33)).toBe(-1);
    }
  });

  test('has an id that is negative or no exact number', () => {
    for (const id of [-1n, 2n ** 53n, -(2n ** 63n)]) {
      expect(read((b) => b.long(-65536).long(id).text('a:1'))).toBeNull();
    }
    expect(read((b) => b.long(2n ** 53n))).toBeNull();
  });

  test('has addresses that cannot be read', () => {
    for (const text of [
      'a',
      'a:',
      ':1',
      'a:b',
      'a:65536',
      'a:-1',
      'a:1:2',
      'a:1||b:2',
      '[::1:1',
      '[::1]',
      '[::1]x:1',
    ]) {
      expect(readAddresses(text), text).toBeUndefined();
    }
  });

  test('has addresses of an invalid length', () => {
    for (const length of [0, -1, HELLO_ADDRESS_BYTES_MAX + 1, 2 ** 31 - 1]) {
      const bytes = bytesOf((b) =>
        b
          .long(-65536)
          .long(3)
          .int(length)
          .raw(new Uint8Array(HELLO_ADDRESS_BYTES_MAX + 1)),
      );
      expect(measureElectionHello(bytes, 0, bytes.length)).toBe(-1);
      expect(readElectionHello(new JuteReader(bytes))).toBeNull();
    }
  });
});

test('a hello that arrives in pieces is measured once it is complete, regardless of later bytes', () => {
  const hello = bytesOf((b) => b.long(-65536).long(3).text('zoo1:3888'));
  const bytes = bytesOf((b) => b.raw([1, 2, 3]).raw(hello).raw([9, 9, 9]));
  for (let there = 0; there < hello.length; there++) expect(measureElectionHello(bytes, 3, 3 + there)).toBe(0);
  expect(measureElectionHello(bytes, 3, 3 + hello.length)).toBe(hello.length);
  expect(measureElectionHello(bytes, 3, bytes.length)).toBe(hello.length);
});

test('a hello from before 3.5 is eight bytes long, and a frame follows', () => {
  const bytes = bytesOf((b) => b.long(3).int(40));
  expect(measureElectionHello(bytes, 0, 7)).toBe(0);
  expect(measureElectionHello(bytes, 0, bytes.length)).toBe(8);
});
