import type { LoggedTxn } from '@meerkat/simulator';

export function zxid(epoch: number, counter: number): number {
  return epoch * 2 ** 32 + counter;
}

/** A logged txn that sets /a (TxnHeader and SetDataTxn, encoded by hand). */
export function logged(zxid: number, data = `data of ${zxid}`): LoggedTxn {
  const path = Buffer.from('/a');
  const bytes = Buffer.from(data);
  const payload = Buffer.alloc(32 + 4 + path.length + 4 + bytes.length + 4);
  payload.writeBigInt64BE(0x77n, 0); // session
  payload.writeInt32BE(1, 8); // cxid
  payload.writeBigInt64BE(BigInt(zxid), 12);
  payload.writeBigInt64BE(1000n, 20); // time
  payload.writeInt32BE(5, 28); // setData
  payload.writeInt32BE(path.length, 32);
  path.copy(payload, 36);
  payload.writeInt32BE(bytes.length, 36 + path.length);
  bytes.copy(payload, 40 + path.length);
  payload.writeInt32BE(1, 40 + path.length + bytes.length); // version
  return { zxid, payload };
}
