// A server under measurement: a command that serves a zoo.cfg in the foreground, on a free loopback port.
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { zkload } from './load-generator.mjs';
import { exited, start } from './processes.mjs';

const APACHE_JAR = '/usr/share/java/zookeeper.jar';
const APACHE_COMMAND = [
  'java',
  '-Xmx4g',
  '-cp',
  APACHE_JAR,
  'org.apache.zookeeper.server.quorum.QuorumPeerMain',
  '{cfg}',
];
const MEERKAT_COMMAND = [
  process.execPath,
  fileURLToPath(new URL('../packages/cli/bin/meerkat.js', import.meta.url)),
  'server',
  '{cfg}',
];

/** The server of the Debian package `zookeeper`, or null when that is not installed. */
export const apacheEngine = () => (existsSync(APACHE_JAR) ? { name: 'apache', command: APACHE_COMMAND } : null);

/** Our server; `command` replaces it with another build or program, with `{cfg}` for the path of its zoo.cfg. */
export const meerkatEngine = (command) => ({
  name: 'meerkat',
  command: command === undefined ? MEERKAT_COMMAND : command.split(/\s+/),
});

export class Server {
  /** @param settings additional zoo.cfg settings, by key */
  constructor(engine, directory, settings = {}) {
    this.engine = engine;
    this.directory = directory;
    this.settings = settings;
    this.port = 0;
    this.child = null;
  }

  get pid() {
    return this.child.pid;
  }

  /** Where snapshots and logs are. */
  get dataDirectory() {
    return join(this.directory, 'data', 'version-2');
  }

  /**
   * Starts on existing data, if any.
   *
   * @param environment additional environment variables
   * @returns milliseconds from the start of the process to the first answered request
   */
  async start(environment = {}) {
    if (this.port === 0) this.port = await freePort();
    const startedNs = this.launch(environment);
    const died = exited(this.child).then(() => {
      throw new Error(`${this.engine.name} did not start:\n${this.#logTail()}`);
    });
    const ready = zkload('ready', this, { limit: 300, t0: startedNs });
    died.catch(() => {});
    return (await Promise.race([ready, died])).ready_ms;
  }

  /** Starts the process without waiting; the port must be set. Returns the time, in nanoseconds since 1970. */
  launch(environment = {}) {
    mkdirSync(join(this.directory, 'data'), { recursive: true });
    const configuration = join(this.directory, 'zoo.cfg');
    writeFileSync(configuration, this.#configurationText());
    const log = openSync(join(this.directory, 'log'), 'a');
    const [program, ...args] = this.engine.command.map((word) => word.replace('{cfg}', configuration));
    const startedNs = BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6));
    this.child = start(program, args, { stdio: ['ignore', log, log], env: { ...process.env, ...environment } });
    closeSync(log);
    return startedNs;
  }

  async kill() {
    this.child.kill('SIGKILL');
    await exited(this.child);
  }

  /** Shuts the server down gracefully with SIGTERM; SIGKILL after ten seconds. */
  async stop() {
    this.child.kill('SIGTERM');
    const patience = setTimeout(() => this.child.kill('SIGKILL'), 10_000);
    await exited(this.child);
    clearTimeout(patience);
  }

  /** Shuts the server down gracefully and deletes its data. */
  async destroy() {
    if (this.child !== null) await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Resident memory in MB. */
  residentMb() {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)[1]) / 1024;
  }

  /** Names and sizes of the snapshots, including temporary files of snapshots in progress. */
  snapshots() {
    return readdirSync(this.dataDirectory)
      .filter((name) => name.includes('snapshot.'))
      .map((name) => ({ name, size: statSync(join(this.dataDirectory, name), { throwIfNoEntry: false })?.size ?? 0 }));
  }

  /** Keeps only the first snapshot, of an empty tree, so that the next start replays the log. */
  forgetSnapshots() {
    for (const { name } of this.snapshots()) {
      if (name !== 'snapshot.0') rmSync(join(this.dataDirectory, name));
    }
  }

  #configurationText() {
    const settings = {
      tickTime: 2000,
      initLimit: 10,
      syncLimit: 5,
      dataDir: join(this.directory, 'data'),
      clientPort: this.port,
      clientPortAddress: '127.0.0.1',
      maxClientCnxns: 0,
      '4lw.commands.whitelist': '*',
      'admin.enableServer': false,
      ...this.settings,
    };
    return Object.entries(settings)
      .map(([key, value]) => `${key}=${value}\n`)
      .join('');
  }

  #logTail() {
    return readFileSync(join(this.directory, 'log'), 'utf8').split('\n').slice(-12).join('\n');
  }
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
