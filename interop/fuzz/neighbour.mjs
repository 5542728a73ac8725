// The well-behaved client, in its own process: it writes and reads a znode in turn until its standard input ends. It
// prints a line "served" after the first turn, and finally {turns, reconnects, p50, p99, max}: the number of turns and
// of lost connections, and the durations of turns in milliseconds.
//
//   node neighbour.mjs PORT
import { connect } from 'node:net';

const int = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const buffer = (bytes) => Buffer.concat([int(bytes.length), bytes]);
const string = (text) => buffer(Buffer.from(text));
const frame = (...parts) => buffer(Buffer.concat(parts));
const PATH = string('/behaves');
const owner = Buffer.concat([int(1), int(31), string('ip'), string('127.0.0.1')]);
const HELLO = frame(int(0), Buffer.alloc(8), int(10_000), Buffer.alloc(8), buffer(Buffer.alloc(16)), Buffer.alloc(1));
const CREATE = frame(int(1), int(1), PATH, string('0'), owner, int(0));
const WRITE = frame(int(2), int(5), PATH, string('1'), int(-1));
const READ = frame(int(3), int(3), PATH, Buffer.alloc(1));

const ms = [];
/** Milliseconds without a served connection after which this client fails. */
const PATIENCE_MS = 60_000;
let isStopped = false;
let reconnects = 0;
let servedAtMs = performance.now();

process.stdin.on('end', () => {
  isStopped = true;
});
process.stdin.resume();
run();

function run() {
  let sentMs = 0;
  let replies = -2;
  let rest = Buffer.alloc(0);
  const socket = connect({ port: Number(process.argv[2]), host: '127.0.0.1', noDelay: true });
  socket.on('error', () => {});
  socket.on('connect', () => socket.write(HELLO));
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE()) {
      const reply = rest.subarray(4, 4 + rest.readInt32BE());
      rest = rest.subarray(4 + reply.length);
      onReply(reply);
    }
  });
  // Reconnects, as every client must after a leader change.
  socket.on('close', () => {
    if (performance.now() - servedAtMs > PATIENCE_MS) fail(`there has been no service for ${PATIENCE_MS} ms`);
    if (replies >= 0) reconnects++;
    setTimeout(run, 50);
  });

  const onReply = (reply) => {
    replies++;
    if (replies === -1) {
      socket.write(CREATE);
      return;
    }
    const error = reply.readInt32BE(12);
    const isThereAlready = replies === 0 && error === -110;
    if (error !== 0 && !isThereAlready) fail(`a request is answered with ${error}`);
    servedAtMs = performance.now();
    if (replies % 2 === 1) return;
    if (replies > 0) ms.push(performance.now() - sentMs);
    if (ms.length === 1) console.log('served');
    if (isStopped) finish();
    sentMs = performance.now();
    socket.write(Buffer.concat([WRITE, READ]));
  };
}

function finish() {
  ms.sort((a, b) => a - b);
  const at = (part) => ms[Math.min(ms.length - 1, Math.floor(ms.length * part))] ?? 0;
  console.log(JSON.stringify({ turns: ms.length, reconnects, p50: at(0.5), p99: at(0.99), max: at(1) }));
  process.exit(0);
}

function fail(reason) {
  console.error(reason);
  process.exit(1);
}
