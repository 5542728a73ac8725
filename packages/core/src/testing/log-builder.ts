/**
 * Log files byte by byte, for tests: the format of Apache ZooKeeper's FileTxnLog, deliberately implemented a second
 * time, so that the input of a test never comes from the writer under test.
 */

export interface BuiltTxn {
  readonly zxid: number;
  /** Milliseconds since 1970. */
  readonly time?: number;
  /** For an error txn, the only kind that is built here. */
  readonly error?: number;
}

export interface BuiltLog {
  /** The zxid before the file in the header; omitted: 0, as Apache servers write. */
  readonly before?: number;
  readonly txns: readonly (number | BuiltTxn)[];
  /** Bytes of the file, padded with zeros. */
  readonly size?: number;
}

export function buildLog({ before, txns, size = 0 }: BuiltLog): Uint8Array {
  const dbid = before === undefined ? 0n : ~BigInt(before);
  const parts = [int(0x5a4b4c47), int(2), long(dbid)];
  for (const txn of txns) parts.push(buildEntry(typeof txn === 'number' ? { zxid: txn } : txn));
  const bytes = Uint8Array.from(parts.flatMap((part) => [...part]));
  const file = new Uint8Array(Math.max(size, bytes.length));
  file.set(bytes);
  return file;
}

/** long checksum, int length, TxnHeader, int error, byte 'B'. */
function buildEntry({ zxid, time = 1_700_000_000_000, error = -101 }: BuiltTxn): number[] {
  const payload = [...long(0x1000000000001n), ...int(zxid % 1000), ...long(BigInt(zxid)), ...long(BigInt(time))];
  payload.push(...int(-1), ...int(error));
  let a = 1;
  let b = 0;
  for (const byte of payload) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return [...long(BigInt(b * 65536 + a)), ...int(payload.length), ...payload, 0x42];
}

function int(value: number): number[] {
  return [24, 16, 8, 0].map((shift) => (value >> shift) & 0xff);
}

function long(value: bigint): number[] {
  return [56n, 48n, 40n, 32n, 24n, 16n, 8n, 0n].map((shift) => Number((value >> shift) & 0xffn));
}
