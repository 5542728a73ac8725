// One attack in its own process:   node attacker.mjs NAME PORT SCALE ZNODES ADMIN-PORT
//   or, to create the znodes:      node attacker.mjs fill PORT - ZNODES
// Prints "ready" after its preparations, attacks from the first byte on stdin until the second, and then prints its
// counts as JSON.
import { ATTACKS } from './attacks.mjs';
import { fill } from './preparation.mjs';

const [name, port, scale, znodes, adminPort] = process.argv.slice(2);
if (name === 'fill') {
  await fill(Number(port), Number(znodes));
  process.exit(0);
}
const attack = ATTACKS.find((known) => known.name === name);
const made = await attack.make({
  port: Number(port),
  adminPort: Number(adminPort),
  scale: Number(scale),
  znodes: Number(znodes),
});
console.log('ready');

let bytes = 0;
let resolveNext;
const next = () => new Promise((resolve) => (resolveNext = resolve));
process.stdin.on('data', (chunk) => {
  bytes += chunk.length;
  resolveNext?.();
});
if (bytes === 0) await next();
const before = made.client?.replies ?? 0;
let fault = null;
try {
  await attack.attack(made, () => bytes > 1);
  await attack.unmake?.(made);
} catch (error) {
  fault = error.message;
}
const { client } = made;
const replies = client === undefined ? null : client.replies - before;
const errors = client === undefined ? {} : Object.fromEntries(client.errors);
console.log(JSON.stringify({ replies, bytes: client?.bytes ?? null, errors, fault }));
process.exit(0);
