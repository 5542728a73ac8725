// The upper bound for notifying many watchers: a Node.js process that writes a frame to every connection except the
// requester's.  Request: u32 length, i32 id, i32 size.  Reply: u32 length, i32 id; if the size is above zero, all
// others are first sent u32 length, i32 -1, `size` bytes.
//
//   node bare-fan-server.mjs PORT            (load: zkload fan --hosts 127.0.0.1:PORT)
import net from 'node:net';

const REQUEST_BYTES = 12;
const sockets = new Set();

const server = net.createServer({ noDelay: true }, (socket) => {
  sockets.add(socket);
  socket.on('error', () => socket.destroy());
  socket.on('close', () => sockets.delete(socket));
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (; rest.length >= REQUEST_BYTES; rest = rest.subarray(REQUEST_BYTES)) {
      notifyOthers(socket, rest.readInt32BE(8));
      socket.write(frame(rest.readInt32BE(4), 0));
    }
  });
});
server.listen({ host: '127.0.0.1', port: Number(process.argv[2]), backlog: 4096 });

function notifyOthers(asker, size) {
  if (size === 0) return;
  const bytes = frame(-1, size);
  for (const socket of sockets) {
    if (socket !== asker) socket.write(bytes);
  }
}

function frame(id, size) {
  const bytes = Buffer.alloc(8 + size);
  bytes.writeUInt32BE(4 + size, 0);
  bytes.writeInt32BE(id, 4);
  return bytes;
}
