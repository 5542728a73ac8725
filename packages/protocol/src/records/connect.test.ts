import { expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { bytesOf } from '../testing/byte-list.ts';
import { readConnectRequest, readConnectResponse, writeConnectRequest, writeConnectResponse } from './connect.ts';

const PASSWORD = Uint8Array.from({ length: 16 }, (_, i) => i);

const REQUEST = {
  protocolVersion: 0,
  lastZxidSeen: 0x200000005,
  timeoutMs: 30_000,
  sessionId: 0x1000abcdef10000n,
  password: PASSWORD,
  readOnly: true,
  hasReadOnlyByte: true,
};
const REQUEST_BYTES = bytesOf((b) =>
  b.int(0).long(0x200000005).int(30_000).long(0x1000abcdef10000n).buffer(PASSWORD).boolean(true),
);

test('a connect request has 45 bytes, and 44 from clients that do not know read-only servers', () => {
  expect(REQUEST_BYTES).toHaveLength(45);
  expect(readConnectRequest(new JuteReader(REQUEST_BYTES))).toEqual(REQUEST);
  const old = readConnectRequest(new JuteReader(REQUEST_BYTES.subarray(0, 44)));
  expect(old).toEqual({ ...REQUEST, readOnly: false, hasReadOnlyByte: false });

  const writer = new JuteWriter();
  writeConnectRequest(writer, REQUEST);
  expect(writer.toBytes()).toEqual(REQUEST_BYTES);
  const oldWriter = new JuteWriter();
  writeConnectRequest(oldWriter, old);
  expect(oldWriter.toBytes()).toEqual(REQUEST_BYTES.subarray(0, 44));
});

test('a null password reads as an empty one', () => {
  const reader = new JuteReader(bytesOf((b) => b.int(0).long(0).int(0).long(0).buffer(null).boolean(false)));
  expect(readConnectRequest(reader)).toMatchObject({ password: new Uint8Array(0), hasReadOnlyByte: true });
  expect(reader.failed).toBe(false);
});

test('the password is a copy, because it outlives its chunk', () => {
  const bytes = REQUEST_BYTES.slice();
  const request = readConnectRequest(new JuteReader(bytes));
  bytes.fill(0xee);
  expect(request.password).toEqual(PASSWORD);
});

test('a connect request that ends early is refused', () => {
  for (let length = 0; length < 44; length++) {
    const reader = new JuteReader(REQUEST_BYTES.subarray(0, length));
    readConnectRequest(reader);
    expect(reader.failed, `${length} bytes`).toBe(true);
  }
});

test('a last zxid seen beyond the exact numbers is refused', () => {
  const reader = new JuteReader(
    bytesOf((b) =>
      b
        .int(0)
        .long(2n ** 62n)
        .int(0)
        .long(0)
        .buffer(PASSWORD),
    ),
  );
  readConnectRequest(reader);
  expect(reader.failed).toBe(true);
});

test('a connect response has 37 bytes, and 36 for old clients', () => {
  const response = {
    protocolVersion: 0,
    timeoutMs: 6000,
    sessionId: -2n,
    password: PASSWORD,
    readOnly: false,
    hasReadOnlyByte: true,
  };
  const bytes = bytesOf((b) => b.int(0).int(6000).long(-2).buffer(PASSWORD).boolean(false));
  expect(bytes).toHaveLength(37);
  const writer = new JuteWriter();
  writeConnectResponse(writer, response);
  expect(writer.toBytes()).toEqual(bytes);
  expect(readConnectResponse(new JuteReader(bytes))).toEqual(response);

  const oldWriter = new JuteWriter();
  writeConnectResponse(oldWriter, { ...response, hasReadOnlyByte: false });
  expect(oldWriter.toBytes()).toEqual(bytes.subarray(0, 36));
  expect(readConnectResponse(new JuteReader(bytes.subarray(0, 36)))).toEqual({ ...response, hasReadOnlyByte: false });
});
