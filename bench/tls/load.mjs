// A client process of the TLS measurements: runs one job and prints the result as JSON.
//
//   node load.mjs '{"job":"reads","port":2281,"tls":{"ca":…,"cert":…,"key":…},"seconds":3}'
//
//   reads, writes    several connections with a window of requests each: {count}
//   latency          one connection, one read in flight: the line "open", then {count, p50, p99, max} in milliseconds
//   handshakes       connections that are closed after their handshake, `limit` of them or for `seconds`: {count}
//   resumed          the same, resuming the session of the first
//   silent, hellos   a flood of connections that send nothing, or only a ClientHello: {count}
import { connect, createServer } from 'node:net';
import { connect as connectTls } from 'node:tls';

const job = JSON.parse(process.argv[2]);
const { port, tls, seconds = 3, connections = 8, window = 32, limit = Number.POSITIVE_INFINITY } = job;
const host = '127.0.0.1';
const endMs = performance.now() + seconds * 1000;
const PATH = '/bench-tls';
const DATA = Buffer.alloc(1024, 'x');
const OP = { create: 1, getData: 4, setData: 5 };

const int = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const buffer = (bytes) => Buffer.concat([int(bytes.length), bytes]);
const string = (text) => buffer(Buffer.from(text));
const frame = (...parts) => buffer(Buffer.concat(parts));
const world = Buffer.concat([int(1), int(31), string('world'), string('anyone')]);
const HELLO = frame(int(0), Buffer.alloc(8), int(30_000), Buffer.alloc(8), buffer(Buffer.alloc(16)), Buffer.alloc(1));
const CREATE = frame(int(1), int(OP.create), string(PATH), buffer(DATA), world, int(0));
const READ = frame(int(2), int(OP.getData), string(PATH), Buffer.alloc(1));
const WRITE = frame(int(2), int(OP.setData), string(PATH), buffer(DATA), int(-1));

/** Calls `onFrame` for each received frame. */
function open(onReady, onFrame) {
  const socket = tls === null ? connect({ host, port, noDelay: true }) : connectTls({ host, port, ...tls });
  socket.setNoDelay(true);
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    let bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (bytes.length >= 4) {
      const length = 4 + bytes.readInt32BE();
      if (bytes.length < length) break;
      bytes = bytes.subarray(length);
      onFrame(socket);
    }
    rest = bytes;
  });
  socket.on('error', (error) => {
    console.error(error.message);
    process.exit(1);
  });
  socket.once(tls === null ? 'connect' : 'secureConnect', () => onReady(socket));
}

/** Opens a session and creates the znode; then calls `onReply` for each reply. */
function openSession(onOpen, onReply) {
  let frames = 0;
  open(
    (socket) => socket.write(HELLO),
    (socket) => {
      frames++;
      if (frames === 1) socket.write(CREATE);
      else if (frames === 2) onOpen(socket);
      else onReply(socket);
    },
  );
}

function finish(answer) {
  console.log(JSON.stringify(answer));
  process.exit(0);
}

function pipeline(request) {
  let count = 0;
  const batch = Buffer.concat(Array.from({ length: window }, () => request));
  for (let i = 0; i < connections; i++) {
    let left = window;
    openSession(
      (socket) => socket.write(batch),
      (socket) => {
        count++;
        if (--left > 0) return;
        left = window;
        if (performance.now() >= endMs) finish({ count });
        socket.write(batch);
      },
    );
  }
}

function latency() {
  const ms = [];
  let sentMs = 0;
  let lastMs = 0;
  const send = (socket) => {
    sentMs = performance.now();
    socket.write(READ);
  };
  const begin = (socket) => {
    console.log('open');
    lastMs = performance.now() + seconds * 1000;
    send(socket);
  };
  openSession(begin, (socket) => {
    ms.push(performance.now() - sentMs);
    if (performance.now() < lastMs) {
      send(socket);
      return;
    }
    ms.sort((a, b) => a - b);
    const at = (part) => ms[Math.min(ms.length - 1, Math.floor(ms.length * part))];
    finish({ count: ms.length, p50: at(0.5), p99: at(0.99), max: ms.at(-1) });
  });
}

function handshakes(isResumed) {
  let session;
  let begun = 0;
  let count = 0;
  const next = () => {
    if (begun >= limit) return;
    begun++;
    const socket = connectTls({ host, port, ...tls, ...(session === undefined ? {} : { session }) });
    socket.once('error', () => {});
    socket.once('secureConnect', () => {
      if (isResumed && session !== undefined && !socket.isSessionReused()) throw new Error('not resumed');
      // With TLS 1.3 the server has not finished its handshake yet: destroying the connection here would fail it.
      socket.end();
    });
    socket.once('close', () => {
      count++;
      if (count >= limit || performance.now() >= endMs) finish({ count });
      next();
    });
  };
  const begin = () => {
    for (let i = 0; i < connections; i++) next();
  };
  if (!isResumed) begin();
  else {
    const first = connectTls({ host, port, ...tls });
    first.once('session', (made) => {
      session = made;
      first.destroy();
      begin();
    });
    // With TLS 1.3 the session ticket arrives after the handshake, and only if the socket is read.
    first.resume();
  }
}

function flood(bytes) {
  let count = 0;
  const next = () => {
    if (performance.now() >= endMs) finish({ count });
    const socket = connect({ host, port });
    socket.on('error', () => {});
    socket.once('connect', () => {
      count++;
      if (bytes !== null) socket.write(bytes);
      if (count % 50 === 0) setImmediate(next);
      else next();
    });
    socket.once('close', () => {});
  };
  for (let i = 0; i < 4; i++) next();
}

/** A ClientHello as sent by this process's own client, without anything after it. */
function recordHello(onHello) {
  const trap = createServer((socket) => {
    socket.once('data', (bytes) => {
      trap.close();
      socket.destroy();
      onHello(bytes);
    });
  });
  trap.listen(0, host, () => connectTls({ host, port: trap.address().port }).on('error', () => {}));
}

const JOBS = {
  reads: () => pipeline(READ),
  writes: () => pipeline(WRITE),
  latency,
  handshakes: () => handshakes(false),
  resumed: () => handshakes(true),
  silent: () => flood(null),
  hellos: () => recordHello(flood),
};
JOBS[job.job]();
