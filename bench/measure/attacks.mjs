import { existsSync, readFileSync, rmSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ATTACKS } from '../attacks/attacks.mjs';
import { fill } from '../attacks/preparation.mjs';
import { freePort, Server } from '../engine.mjs';
import { zkload } from '../load-generator.mjs';
import { locked } from '../measure-lock.mjs';
import { exited, start } from '../processes.mjs';
import { makeCertificates } from './threads.mjs';

/** Meter of the CPU time of a turn; works for our server only. */
const METER = new URL('../turn-cost.mjs', import.meta.url).href;
const ATTACKER = fileURLToPath(new URL('../attacks/attacker.mjs', import.meta.url));
/** An open loop of a thousand requests a second at fixed times. */
const WITNESS = {
  rate: 1000,
  conns: 4,
  depth: 256,
  size: 100,
  nodes: 100,
  root: '/witness',
  warmup: 0.2,
  drain: 60,
  timeout: 60_000,
};
const P99_MS_MAX = 20;
/** How long an attacker may take to prepare and to stop. */
const PATIENCE_MS = 60_000;
/**
 * Command prefix that gives priority over all other processes: its own session with the highest autogroup weight.
 * Real-time scheduling would take away 50 ms of each second from a process that needs a whole CPU.
 */
const FIRST = ['setsid', 'sh', '-c', 'echo -20 > /proc/self/autogroup && exec "$@"', 'sh'];

const AMOUNTS = {
  quick: { seconds: 2, scale: 0.1 },
  full: { seconds: 6, scale: 1 },
};

/**
 * @param options `engine`: the server; `only`: attacks whose name matches; `isQuick`: a tenth of the sizes;
 *   `isFirst`: server and client get priority over all other processes except the attacker
 * @returns a Markdown table
 */
export async function measureAttacks({ engine, only, isQuick, isFirst }, directory, progress) {
  const { seconds, scale } = isQuick ? AMOUNTS.quick : AMOUNTS.full;
  const znodes = 1_000_000 * scale;
  const scheduler = isFirst ? FIRST : [];
  const served = { ...engine, command: [...scheduler, ...engine.command] };
  const { keyStore, trustStore } = await makeCertificates(join(directory, 'certificates'));
  const server = new Server(served, join(directory, 'attacked'), {
    snapCount: 2_000_000_000,
    'admin.enableServer': true,
    'admin.serverPort': await freePort(),
    'admin.portUnification': true,
    'ssl.quorum.keyStore.location': keyStore,
    'ssl.quorum.trustStore.location': trustStore,
  });
  const meter = engine.name === 'meerkat' ? new TurnMeter(server, join(directory, 'turn-cost')) : null;
  const rows = [];
  await server.start(meter?.environment);
  progress(`creating ${znodes} znodes`);
  await fill(server.port, znodes);
  await locked(() => zkload('load', server, { ...WITNESS, read: 90, secs: 3 }));
  for (const attack of ATTACKS.filter(({ name }) => only.test(name))) {
    const times = { seconds: Math.max(seconds, (attack.seconds ?? 0) * scale), scale };
    const row = await locked(() => measure(attack, server, { ...times, znodes, scheduler, meter })).catch(
      ({ message }) => ({ name: attack.name, fault: message.split('\n')[0] }),
    );
    rows.push(row);
    progress(`${attack.name}: ${row.fault ?? describe(row)}`);
    if (server.child.exitCode !== null || server.child.signalCode !== null) await server.start(meter?.environment);
  }
  await server.destroy();
  if (rows.some(({ fault }) => fault !== undefined)) process.exitCode = 1;
  const sizes = scale === 1 ? 'those of the titles' : `${scale} times those of the titles`;
  const load = loadavg()[1].toFixed(1);
  return `${formatRows(rows)}\n\nSizes are ${sizes}; at least ${seconds} s each; load average over the last 5 minutes ${load}.`;
}

async function measure(attack, server, { seconds, scale, znodes, scheduler, meter }) {
  const attacker = start(
    process.execPath,
    [ATTACKER, attack.name, server.port, scale, znodes, server.settings['admin.serverPort']],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const lines = createInterface({ input: attacker.stdout })[Symbol.asyncIterator]();
  const preparation = setTimeout(() => attacker.kill('SIGKILL'), PATIENCE_MS);
  const isReady = (await lines.next()).value === 'ready';
  clearTimeout(preparation);
  if (!isReady) throw new Error('the attack did not begin');
  const before = server.residentMb();
  await meter?.read();
  attacker.stdin.write('b');
  const sampler = sampleMemory(server);
  let latencies = null;
  try {
    const { lat_us } = await zkload(
      'load',
      { port: server.port, pid: server.pid, scheduler },
      { ...WITNESS, read: 90, secs: seconds },
    );
    latencies = lat_us;
  } catch (error) {
    await Promise.race([exited(server.child), sleep(5000)]);
    if (isRunning(server)) {
      sampler.end();
      attacker.kill('SIGKILL');
      throw error;
    }
  }
  const residentMb = sampler.end();
  const turnMs = (await meter?.read()) ?? null;
  attacker.stdin.on('error', () => {});
  attacker.stdin.write('e');
  const patience = setTimeout(() => attacker.kill('SIGKILL'), PATIENCE_MS);
  const lastLine = (await lines.next()).value;
  await exited(attacker);
  clearTimeout(patience);
  const result =
    lastLine === undefined ? { replies: null, errors: {}, fault: 'did not come to its end' } : JSON.parse(lastLine);
  return { name: attack.name, latencies, turnMs, residentMb: [before, residentMb], result };
}

/** Asks a server, by a signal, for the CPU time of its most expensive turn since the last call. */
class TurnMeter {
  #server;
  #file;

  constructor(server, file) {
    this.#server = server;
    this.#file = file;
  }

  get environment() {
    return { NODE_OPTIONS: `--import ${METER}`, TURN_METER_FILE: this.#file };
  }

  /** @returns milliseconds, or null when the server has exited */
  async read() {
    rmSync(this.#file, { force: true });
    for (let i = 0; i < 200 && isRunning(this.#server); i++) {
      if (i === 0) process.kill(this.#server.pid, 'SIGUSR2');
      await sleep(25);
      if (existsSync(this.#file) && readFileSync(this.#file, 'utf8').endsWith('\n'))
        return Number(readFileSync(this.#file, 'utf8'));
    }
    return null;
  }
}

const isRunning = (server) => server.child.exitCode === null && server.child.signalCode === null;

/** @returns `end`, which returns the server's peak memory since the call, in MB */
function sampleMemory(server) {
  let largest = 0;
  const timer = setInterval(() => {
    try {
      largest = Math.max(largest, server.residentMb());
    } catch {
      // It has just exited.
    }
  }, 50);
  return {
    end() {
      clearInterval(timer);
      return largest;
    },
  };
}

function describe({ latencies, turnMs, residentMb, result }) {
  const times =
    latencies === null
      ? 'the server ended'
      : Object.entries(latencies)
          .map(([op, { p50, p99, max }]) => `${op} ${ms(p50)} ${ms(p99)} ${ms(max)}`)
          .join(', ');
  const turn = turnMs === null ? '' : `; longest turn ${turnMs.toFixed(1)} ms`;
  return `${times}${turn}; ${residentMb.map((mb) => mb.toFixed(0)).join(' to ')} MB; ${JSON.stringify(result)}`;
}

const ms = (us) => (us / 1000).toFixed(us < 10_000 ? 2 : 0);

function formatRows(rows) {
  const lines = [
    ['beside', 'p50', 'p99', 'longest', `p99 ≤ ${P99_MS_MAX} ms`, 'longest turn', 'memory grew by'],
    ['---', '---:', '---:', '---:', '---', '---:', '---:'],
    ...rows.map(({ name, latencies, turnMs, residentMb, fault }) =>
      fault !== undefined
        ? [name, '–', '–', '–', `not measured: ${fault}`, '–', '–']
        : latencies === null
          ? [name, '–', '–', '–', 'the server ended', '–', '–']
          : [
              name,
              ...(latencies.all.n === 0
                ? ['–', '–', 'no answer at all']
                : ['p50', 'p99', 'max'].map((key) => `${ms(latencies.all[key])} ms`)),
              latencies.all.n > 0 && latencies.all.p99 <= 1000 * P99_MS_MAX ? '✓' : '✗',
              turnMs === null ? '–' : `${turnMs.toFixed(1)} ms`,
              `${Math.max(0, residentMb[1] - residentMb[0]).toFixed(0)} MB`,
            ],
    ),
  ];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
