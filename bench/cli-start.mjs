// How long `meerkat ls /` takes, start-up included, compared with `zkCli.sh ls /` and an empty Node.js program.
//
//   node bench/cli-start.mjs [--rounds 15] [--file dist/meerkat-linux-x64]
//
//   --file   the single executable (`npm run build:single`), measured too
//
// Each round runs all of them in turn against one Meerkat server. Reports wall-clock time and the CPU time of the
// command (user and system), because load on the machine increases the former.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { meerkatEngine, Server } from './engine.mjs';
import { BENCH_DIRECTORY } from './load-generator.mjs';
import { locked } from './measure-lock.mjs';
import { killAll, run } from './processes.mjs';
import { formatTable, median } from './report.mjs';

const MEERKAT = fileURLToPath(new URL('../packages/cli/bin/meerkat.js', import.meta.url));
const ZKCLI = '/usr/share/zookeeper/bin/zkCli.sh';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '15' }, file: { type: 'string' } },
});
const directory = join(BENCH_DIRECTORY, `cli-start-${process.pid}`);
process.on('exit', () => {
  killAll();
  rmSync(directory, { recursive: true, force: true });
});

const server = new Server(meerkatEngine(), directory);
await server.start();
const address = `127.0.0.1:${server.port}`;
const commands = {
  node: [process.execPath, '-e', '0'],
  meerkat: [process.execPath, MEERKAT, 'ls', '/', '--server', address],
  ...(values.file === undefined ? {} : { file: [values.file, 'ls', '/', '--server', address] }),
  ...(existsSync(ZKCLI) ? { zkCli: [ZKCLI, '-server', address, 'ls', '/'] } : {}),
};
const wallMs = { node: [], meerkat: [], file: [], zkCli: [] };
const processorMs = { node: [], meerkat: [], file: [], zkCli: [] };
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const [name, [program, ...args]] of Object.entries(commands)) {
    const { wall, processor } = await locked(() => measure(program, args));
    // The first round warms the page cache.
    if (round === 0) continue;
    wallMs[name].push(wall);
    processorMs[name].push(processor);
  }
}
await server.destroy();

const rows = [
  row('`ls /`, wall-clock time', wallMs.zkCli, wallMs.meerkat, { must: { valueMax: 200 } }),
  row('`ls /`, wall-clock time, beside `node -e 0`', wallMs.node, wallMs.meerkat, { referenceNote: 'node: ' }),
  row('`ls /`, processor time, beside `node -e 0`', processorMs.node, processorMs.meerkat, { referenceNote: 'node: ' }),
];
if (values.file !== undefined) {
  const note = { referenceNote: 'with Node.js: ' };
  rows.push(
    row('`ls /` of the single executable, wall-clock time', wallMs.meerkat, wallMs.file, note),
    row('`ls /` of the single executable, processor time', processorMs.meerkat, processorMs.file, note),
  );
}
console.log(formatTable(rows, '`zkCli.sh`'));
console.log(
  `\nNode.js ${process.version}; ${values.rounds} rounds; fastest ${Math.min(...wallMs.meerkat).toFixed(0)} ms.`,
);
console.error(
  `medians of wall-clock time: ${Object.entries(wallMs).map(([name, all]) => `${name} ${median(all)?.toFixed(0)}`)}`,
);

function row(title, reference, meerkat, more = {}) {
  return { title, unit: 'ms', reference, meerkat, ...more };
}

/** The shell's `time` reports the CPU time of a command and its children. */
async function measure(program, args) {
  const before = process.hrtime.bigint();
  const report = await run('bash', [
    '-c',
    'TIMEFORMAT="%U %S"; { time "$@" > /dev/null 2>&1 < /dev/null; } 2>&1',
    'time',
    program,
    ...args,
  ]);
  const wall = Number(process.hrtime.bigint() - before) / 1e6;
  const [user, system] = report.trim().split(' ').map(Number);
  return { wall, processor: (user + system) * 1000 };
}
