/**
 * The long form: `npm run fuzz -- --frames 1000000 --seed 1`. Ends with exit code 1 when the server has not stood it.
 *
 * Everything is sent over the loopback interface, to a server that this script has started.
 */
import { parseArgs } from 'node:util';
import { fuzzClientPort } from './client-port.ts';

const { values } = parseArgs({
  options: { frames: { type: 'string', default: '1000000' }, seed: { type: 'string', default: '1' } },
});

try {
  const report = await fuzzClientPort({
    frames: Number(values.frames),
    seed: Number(values.seed),
    onProgress: (frames) => console.log(`${frames} frames`),
  });
  const megabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
  console.log(`${report.frames} frames on ${report.connections} connections: the server stands`);
  console.log(
    `a client beside them: ${report.requests} requests, p50 ${report.p50Ms.toFixed(1)} ms, p99 ${report.p99Ms.toFixed(1)} ms`,
  );
  console.log(`memory: ${megabytes(report.residentBytesBefore)} before, ${megabytes(report.residentBytesAfter)} after`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
