import { closeSync, openSync, writeSync } from 'node:fs';

/**
 * Writes a snapshot without any code of the server: `count` znodes with `bytes` of data each, in groups of a thousand,
 * without sessions, ACLs and digest.
 */
export function makeLargeSnapshot(path: string, count: number, bytes: number): void {
  const file = openSync(path, 'w');
  let a = 1;
  let b = 0;
  const write = (chunk: Buffer): void => {
    // Adler-32.
    for (let at = 0; at < chunk.length; ) {
      const end = Math.min(at + 3800, chunk.length);
      for (; at < end; at++) {
        a += chunk[at]!;
        b += a;
      }
      a %= 65_521;
      b %= 65_521;
    }
    writeSync(file, chunk);
  };
  const header = Buffer.alloc(16);
  header.writeInt32BE(0x5a4b534e, 0);
  header.writeInt32BE(2, 4);
  header.writeBigInt64BE(-1n, 8);
  write(Buffer.concat([header, Buffer.alloc(8)]));
  const data = Buffer.alloc(bytes, 0x78);
  let chunk: Buffer[] = ['', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'].map((at) =>
    znode(at, Buffer.alloc(0)),
  );
  for (let n = 0; n < count; n++) {
    if (n % 1000 === 0) chunk.push(znode(`/g${n / 1000}`, Buffer.alloc(0)));
    chunk.push(znode(`/g${Math.floor(n / 1000)}/znode-${n}`, data));
    if (chunk.length < 5000) continue;
    write(Buffer.concat(chunk));
    chunk = [];
  }
  write(Buffer.concat([...chunk, ustring('/')]));
  const seal = Buffer.alloc(8);
  seal.writeUInt32BE(((b << 16) | a) >>> 0, 4);
  writeSync(file, Buffer.concat([seal, ustring('/')]));
  closeSync(file);
}

function znode(path: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(data.length);
  const stat = Buffer.alloc(8 + 60);
  stat.writeBigInt64BE(-1n);
  return Buffer.concat([ustring(path), length, data, stat]);
}

function ustring(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
