/**
 * Simulates a slow log disk: every write or sync of a log file, synchronous or not, takes SLOW_LOG_MS longer. Log files
 * are recognized by name, independently of the calls that the server uses.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';

const DELAY_MS = Number(process.env.SLOW_LOG_MS);
const logs = new Set();

const { open, close } = fs;
fs.open = (path, ...rest) => {
  const done = rest.pop();
  open(path, ...rest, (error, fd) => {
    if (error === null && /^log\.[0-9a-f]+$/.test(basename(String(path)))) logs.add(fd);
    done(error, fd);
  });
};
fs.close = (fd, ...rest) => {
  logs.delete(fd);
  close(fd, ...rest);
};
for (const name of ['write', 'writev', 'fdatasync', 'fsync']) {
  const real = fs[name];
  fs[name] = (fd, ...rest) => {
    if (!logs.has(fd)) return real(fd, ...rest);
    const done = rest.pop();
    real(fd, ...rest, (...outcome) => setTimeout(done, DELAY_MS, ...outcome));
  };
}
const clock = new Int32Array(new SharedArrayBuffer(4));
for (const name of ['writeSync', 'writevSync', 'fdatasyncSync', 'fsyncSync']) {
  const real = fs[name];
  fs[name] = (fd, ...rest) => {
    if (logs.has(fd)) Atomics.wait(clock, 0, 0, DELAY_MS);
    return real(fd, ...rest);
  };
}
syncBuiltinESMExports();
