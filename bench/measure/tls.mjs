// `npm run bench -- tls`: the cost of TLS per second of the server's CPU time, and a client's latency during floods of
// unfinished handshakes.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { apacheEngine, freePort, Server } from '../engine.mjs';
import { formatRatio, formatValue, median, ratioOf } from '../report.mjs';

const run = promisify(execFile);
const LOAD = fileURLToPath(new URL('../tls/load.mjs', import.meta.url));
const METER = new URL('../cpu-turn-meter.mjs', import.meta.url).href;
const APACHE_JARS = ['zookeeper', 'netty-codec', 'netty-resolver'].map((name) => `/usr/share/java/${name}.jar`);
const TICKS_A_SECOND = 100;
/** Slices that are not counted, for the JIT compiler of Java. */
const WARM_UPS = 3;

/** @returns Markdown */
export async function measureTls({ engine, pairs, seconds }, directory, progress) {
  const { CertificateAuthority } = await import('../../packages/server/dist/index.js');
  const files = join(directory, 'certificates');
  mkdirSync(files, { recursive: true });
  const authority = new CertificateAuthority();
  const names = ['IP:127.0.0.1', 'DNS:localhost'];
  const { certificate: cert, key } = authority.issue('client');
  const tls = { ca: authority.certificate, cert, key };
  writeFileSync(join(files, 'ca.pem'), tls.ca);
  for (const keyType of ['ec', 'rsa']) {
    writeFileSync(join(files, `${keyType}.pem`), authority.issue('server', { names, keyType }).keyStore);
  }
  const start = async (one, name, keyType, environment = {}) => {
    const securePort = await freePort();
    const server = new Server(one, join(directory, name), {
      secureClientPort: securePort,
      secureClientPortAddress: '127.0.0.1',
      serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
      'ssl.keyStore.location': join(files, `${keyType}.pem`),
      'ssl.trustStore.location': join(files, 'ca.pem'),
    });
    await server.start(environment);
    return { server, plain: { port: server.port, tls: null }, secure: { port: securePort, tls }, pid: server.pid };
  };
  /** Completed operations of a job per second of the server's CPU time. */
  const perCpuSecond = async ({ pid }, target, job, more = {}) => {
    const before = cpuSeconds(pid);
    const { count } = await load({ ...target, job, seconds, ...more });
    return count / (cpuSeconds(pid) - before);
  };

  const meerkat = await start(engine, 'meerkat', 'ec');
  const apache = existsSync(APACHE_JARS[0]) ? await start(apacheWithTls(), 'apache', 'ec') : null;
  const rows = [];
  for (const job of ['reads', 'writes']) {
    const figures = { plain: [], secure: [], apache: [] };
    for (let pair = -WARM_UPS; pair < pairs; pair++) {
      progress(`${job} with TLS and without, ${pair < 0 ? 'to warm up' : `${pair + 1} of ${pairs}`}`);
      const found = {
        plain: await perCpuSecond(meerkat, meerkat.plain, job),
        secure: await perCpuSecond(meerkat, meerkat.secure, job),
        apache: apache === null ? Number.NaN : await perCpuSecond(apache, apache.secure, job),
      };
      if (pair >= 0) for (const [name, value] of Object.entries(found)) figures[name].push(value);
    }
    rows.push([`${job} of 1 KiB with TLS, to those without`, compare(figures.secure, figures.plain)]);
    if (apache !== null)
      rows.push([`${job} of 1 KiB with TLS, to Apache's with TLS`, compare(figures.secure, figures.apache)]);
  }
  await apache?.server.destroy();
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3']) {
    for (const job of ['handshakes', 'resumed']) {
      progress(`${job}, ${maxVersion}`);
      const options = { port: meerkat.secure.port, tls: { ...tls, maxVersion } };
      const figures = [];
      for (let i = 0; i < pairs; i++) figures.push(await perCpuSecond(meerkat, options, job));
      rows.push([
        `${job === 'resumed' ? 'resumed' : 'full'} handshakes, ${maxVersion}, P-256, with client certificates`,
        formatValue(median(figures), '/CPU s'),
      ]);
    }
  }
  await meerkat.server.destroy();

  const meterFile = join(directory, 'turn');
  const metered = await start(engine, 'metered', 'rsa', {
    NODE_OPTIONS: `--import ${METER}`,
    TURN_METER_FILE: meterFile,
  });
  const longestTurn = async () => {
    process.kill(metered.pid, 'SIGUSR2');
    await new Promise((resolve) => setTimeout(resolve, 200));
    return JSON.parse(readFileSync(meterFile, 'utf8'));
  };
  await load({ ...metered.secure, job: 'handshakes', limit: 200, seconds: 60 });
  const turns = [];
  for (let i = 0; i < pairs; i++) {
    progress(`the longest turn of 1,000 handshakes, ${i + 1} of ${pairs}`);
    await longestTurn();
    await load({ ...metered.secure, job: 'handshakes', limit: 1000, connections: 200, seconds: 120 });
    turns.push(await longestTurn());
  }
  rows.push([
    'longest turn while 1,000 clients connect, RSA 2048, 200 at a time: processor time of the main thread, of all threads',
    ['main', 'all'].map((of) => formatValue(median(turns.map((turn) => turn[of])), 'ms')).join(', '),
  ]);
  for (const flood of [null, 'silent', 'hellos']) {
    progress(`reads beside ${flood ?? 'nothing'}`);
    // The client is connected before the flood starts.
    let attack = null;
    const onOpen = () => {
      if (flood !== null) attack = load({ ...metered.secure, job: flood, seconds: seconds + 1 });
    };
    const { p50, p99 } = await load({ ...metered.secure, job: 'latency', seconds }, onOpen);
    const count = attack === null ? 0 : (await attack).count;
    const beside =
      flood === null
        ? 'alone'
        : `beside ${count} ${flood === 'silent' ? 'connections that send nothing' : 'ClientHellos that go no further'}`;
    rows.push([
      `one read in flight with TLS, ${beside}: p50, p99`,
      `${formatValue(p50, 'ms')}, ${formatValue(p99, 'ms')}`,
    ]);
  }
  await metered.server.destroy();
  return ['| what | figure |', '| --- | ---: |', ...rows.map((cells) => `| ${cells.join(' | ')} |`)].join('\n');
}

function apacheWithTls() {
  const { command } = apacheEngine();
  return {
    name: 'apache',
    command: command.map((word, i) => (command[i - 1] === '-cp' ? APACHE_JARS.join(':') : word)),
  };
}

/** The median of the pairwise ratios, and the figure itself. */
export function compare(values, reference) {
  const ratio = ratioOf({ meerkat: values, reference });
  return `${formatRatio(ratio)}, ${formatValue(median(values), '/CPU s')}`;
}

/** @param onOpen called for the first of two output lines of a job */
export async function load(job, onOpen = () => {}) {
  const running = run(process.execPath, [LOAD, JSON.stringify(job)]);
  running.child.stdout.once('data', onOpen);
  const { stdout } = await running;
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

/** CPU time used by a process, in seconds. */
export function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}
