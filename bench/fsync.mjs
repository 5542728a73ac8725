// What Node.js reaches on the same log-append test as fsyncrate.cc: groups of K
// records of S bytes, one fdatasync per group, (a) asynchronously through the libuv
// pool, as a server must, (b) synchronously.
//
//   node fsync.mjs FILE [seconds per case = 3] [S = 1024] [K ... = 1 10 100 1000]
import fs from 'node:fs';

const [file, secs = '3', size = '1024', ...ks] = process.argv.slice(2);
if (!file) throw new Error('usage: node fsync.mjs FILE [seconds [size [K...]]]');
const FILE_SIZE = 64 << 20;

const call = (f, ...a) => new Promise((res, rej) => f(...a, (e) => (e ? rej(e) : res())));

for (const k of ks.length ? ks.map(Number) : [1, 10, 100, 1000]) {
  for (const mode of ['async', 'sync']) {
    const fd = fs.openSync(file, 'w');
    fs.writeSync(fd, Buffer.alloc(FILE_SIZE), 0, FILE_SIZE, 0);
    fs.fsyncSync(fd);
    const buf = Buffer.alloc(Number(size) * k, 'x');
    const lat = [];
    let at = 0;
    const t0 = process.hrtime.bigint();
    let t = t0;
    while (Number(t - t0) / 1e9 < Number(secs)) {
      if (at + buf.length > FILE_SIZE) at = 0;
      if (mode === 'async') {
        await call(fs.write, fd, buf, 0, buf.length, at);
        await call(fs.fdatasync, fd);
      } else {
        fs.writeSync(fd, buf, 0, buf.length, at);
        fs.fdatasyncSync(fd);
      }
      at += buf.length;
      const u = process.hrtime.bigint();
      lat.push(Number(u - t) / 1e3);
      t = u;
    }
    lat.sort((a, b) => a - b);
    const s = Number(t - t0) / 1e9;
    const n = lat.length;
    console.log(
      JSON.stringify({
        mode,
        group: k,
        size: Number(size),
        syncs_per_s: Math.round(n / s),
        records_per_s: Math.round((n * k) / s),
        p50_us: Math.round(lat[n >> 1]),
        p99_us: Math.round(lat[Math.floor(n * 0.99)]),
        max_us: Math.round(lat[n - 1]),
      }),
    );
    fs.closeSync(fd);
    fs.unlinkSync(file);
  }
}
