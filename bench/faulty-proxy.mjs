// A proxy between zkload and a healthy server that injects ONE fault, for selftest.sh:
// zkload must notice it.
//   node faulty-proxy.mjs LISTEN_PORT SERVER_PORT FAULT
import net from 'node:net';

const [listen, target, fault] = process.argv.slice(2);
const AT = 200; // the fault hits the first suitable reply after this many
const XID = 4,
  ZXID = 8,
  ERR = 16,
  BODY = 20; // offsets in a frame, length included
let replies = 0;
let done = false;
let lied = 0;

const splitter = (onFrame) => {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
      const n = 4 + rest.readUInt32BE(0);
      onFrame(Buffer.from(rest.subarray(0, n)));
      rest = rest.subarray(n);
    }
  };
};

net
  .createServer((client) => {
    const server = net.connect(Number(target), '127.0.0.1');
    const types = new Map(); // xid -> request type
    let first = true;
    let firstReply = true;
    let held = null;
    let lastZxid = 0n;
    client.on(
      'data',
      splitter((f) => {
        const type = first ? 0 : f.readInt32BE(8);
        if (!first) types.set(f.readInt32BE(XID), type);
        first = false;
        if (fault === 'lostwrite' && type === 1 && replies > AT && lied < 1) {
          lied++; // acknowledge a create that the server never sees
          const r = Buffer.alloc(BODY);
          r.writeUInt32BE(BODY - 4, 0);
          r.writeInt32BE(f.readInt32BE(XID), XID);
          r.writeBigInt64BE(lastZxid, ZXID);
          client.write(r);
          return;
        }
        server.write(f);
      }),
    );
    server.on(
      'data',
      splitter((f) => {
        if (firstReply) {
          firstReply = false;
          client.write(f);
          return;
        }
        const type = types.get(f.readInt32BE(XID));
        if (f.readBigInt64BE(ZXID) > 0n) lastZxid = f.readBigInt64BE(ZXID);
        if (held) {
          client.write(f);
          client.write(held);
          held = null;
          return;
        }
        if (++replies > AT && !done) {
          const read = type === 4;
          switch (fault) {
            case 'none':
              break;
            case 'xid':
              f.writeInt32BE(f.readInt32BE(XID) + 7, XID);
              done = true;
              break;
            case 'zxid':
              f.writeBigInt64BE(1n, ZXID);
              done = true;
              break;
            case 'error':
              f.writeInt32BE(-101, ERR);
              done = true;
              break;
            case 'drop':
              done = true;
              return;
            case 'swap':
              done = true;
              held = f;
              return;
            case 'payload':
              if (read) {
                f[BODY + 4 + 60] ^= 1;
                done = true;
              }
              break;
            case 'short':
              if (read) {
                f.writeInt32BE(f.readInt32BE(BODY) - 1, BODY);
                done = true;
              }
              break;
            case 'stale':
              if (read) f.writeBigInt64BE(1n, f.length - 68 + 8);
              break; // mzxid of every read
            case 'mzxid':
              if (type === 5) {
                f.writeBigInt64BE(1n, BODY + 8);
                done = true;
              }
              break;
            case 'event':
              if (f.readInt32BE(XID) === -1) {
                client.write(f);
                done = true;
              }
              break; // twice
            case 'reset':
              done = true;
              client.destroy();
              return;
          }
        }
        client.write(f);
      }),
    );
    for (const [a, b] of [
      [client, server],
      [server, client],
    ]) {
      a.on('error', () => b.destroy());
      a.on('close', () => b.destroy());
    }
  })
  .listen(Number(listen), '127.0.0.1');
