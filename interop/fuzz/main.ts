/**
 * The long form: `npm run fuzz -- --port quorum --tls --frames 10000000 --seed 1`. Exits with 1 when a server fails.
 *
 * Everything is sent over the loopback interface, to servers started by this script.
 */
import { parseArgs } from 'node:util';
import { fuzz } from './fuzz.ts';
import type { FuzzPort } from './targets.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: 'client' },
    tls: { type: 'boolean', default: false },
    frames: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
  },
});
const PORTS: readonly FuzzPort[] = ['client', 'election', 'quorum'];

try {
  const port = PORTS.find((name) => name === values.port);
  if (port === undefined) throw new Error(`--port is one of ${PORTS.join(', ')}`);
  const startedMs = performance.now();
  const report = await fuzz({
    port,
    withTls: values.tls,
    frames: Number(values.frames),
    seed: Number(values.seed),
    onProgress: (frames) => console.log(`${frames} frames`),
  });
  const { turns } = report;
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  const megabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
  console.log(
    `${port} port${values.tls ? ' with TLS' : ''}: ${report.frames} frames on ${report.connections} connections in ${seconds} s: the servers stand`,
  );
  console.log(
    `a client beside them: ${turns.turns} turns of a write and a read, p50 ${turns.p50.toFixed(1)} ms, p99 ${turns.p99.toFixed(1)} ms, longest ${turns.max.toFixed(0)} ms, ${turns.reconnects} reconnects`,
  );
  console.log(`memory: ${megabytes(report.residentBytesBefore)} before, ${megabytes(report.residentBytesAfter)} after`);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
