/** Simulates a full disk once the file FULL_DISK_MARK exists: every write to a file fails with ENOSPC. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const MARK = String(process.env.FULL_DISK_MARK);
const failure = () =>
  Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', errno: -28, syscall: 'write' });
// Stdout and stderr are not on the disk.
const isFull = (fd) => fd > 2 && fs.existsSync(MARK);

for (const name of ['write', 'writev']) {
  const real = fs[name];
  fs[name] = (fd, ...rest) => (isFull(fd) ? setImmediate(rest.at(-1), failure()) : real(fd, ...rest));
}
for (const name of ['writeSync', 'writevSync']) {
  const real = fs[name];
  fs[name] = (fd, ...rest) => {
    if (isFull(fd)) throw failure();
    return real(fd, ...rest);
  };
}
syncBuiltinESMExports();
