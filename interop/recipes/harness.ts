import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cachePath, findJava, identify, SHORT_JAVA } from '../harness/java.ts';
import { guardOrphan } from '../harness/orphan-guard.ts';

/** Enough for the start of a Java program on a busy machine. */
const WAIT_MS = 120_000;

const JARS = [
  ...['curator-recipes', 'curator-framework', 'curator-client', 'curator-x-discovery', 'zookeeper', 'zookeeper-jute'],
  ...['guava', 'slf4j-api', 'slf4j-nop', 'jackson-core', 'jackson-databind', 'jackson-annotations'],
].map((jar) => `/usr/share/java/${jar}.jar`);

/**
 * A program in another language that uses recipes of a foreign library, controlled by lines:
 *
 *     test     → 7 acquire /lock        a number, a verb and arguments
 *     program  → 7 ok 12                the same number, `ok` or `error`, and an answer
 *     program  → event leader           an asynchronous event
 *
 * Commands run concurrently, each in its own thread. All other output of the program is included in the errors of this
 * class. `interop/recipes/kazoo/driver.py` and `interop/recipes/curator/Driver.java` are the other side.
 *
 * @example
 * await using kazoo = await ForeignProgram.python('locks', server.port);
 * await kazoo.ask('acquire', '/lock');
 */
export class ForeignProgram implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  readonly #asked = new Map<
    number,
    { readonly resolve: (text: string) => void; readonly reject: (e: Error) => void }
  >();
  readonly #events: string[] = [];
  #wake: (() => void)[] = [];
  #number = 0;
  #output = '';
  #rest = '';
  #hasEnded = false;

  /** `interop/recipes/kazoo/<script>.py`, connected to a server on this machine. */
  static python(script: string, port: number, ...args: string[]): Promise<ForeignProgram> {
    const path = fileURLToPath(new URL(`./kazoo/${script}.py`, import.meta.url));
    return ForeignProgram.#start('/usr/bin/python3', [path, `127.0.0.1:${port}`, ...args]);
  }

  /** `interop/recipes/curator/<program>.java`, connected to a server on this machine. */
  static async java(program: string, port: number, ...args: string[]): Promise<ForeignProgram> {
    const classes = await compile();
    const options = [...SHORT_JAVA, '-Xmx128m', '-cp', [classes, ...JARS].join(':')];
    return ForeignProgram.#start('java', [...options, program, `127.0.0.1:${port}`, ...args]);
  }

  static async #start(command: string, args: readonly string[]): Promise<ForeignProgram> {
    const program = new ForeignProgram(command, args);
    try {
      await program.waitForEvent('ready');
    } catch (error) {
      await program.kill();
      throw error;
    }
    return program;
  }

  private constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    const release = guardOrphan(this.#child.pid, null);
    this.#child.stdin?.on('error', () => undefined);
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#onText(chunk.toString()));
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#output += chunk.toString();
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.#output += error.message;
      });
      this.#child.once('close', (code) => {
        release();
        this.#hasEnded = true;
        for (const { reject } of this.#asked.values()) reject(this.#failure('the program ended'));
        this.#asked.clear();
        this.#changed();
        resolve(code);
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Events that were not consumed yet. */
  get events(): readonly string[] {
    return this.#events;
  }

  /** Sends a command and waits for its answer, without a timeout. @throws Error when it failed */
  ask(verb: string, ...words: (string | number)[]): Promise<string> {
    const number = ++this.#number;
    return new Promise((resolve, reject) => {
      if (this.#hasEnded) {
        reject(this.#failure('the program ended'));
        return;
      }
      this.#asked.set(number, { resolve, reject });
      this.#child.stdin?.write(`${[number, verb, ...words].join(' ')}\n`);
    });
  }

  /** Waits for an event with this prefix, and consumes it and all before it. */
  async waitForEvent(beginning: string): Promise<string> {
    const endMs = Date.now() + WAIT_MS;
    for (;;) {
      const index = this.#events.findIndex((event) => event.startsWith(beginning));
      const event = this.#events[index];
      if (event !== undefined) {
        this.#events.splice(0, index + 1);
        return event;
      }
      if (this.#hasEnded) throw this.#failure(`the program ended before the event "${beginning}"`);
      const leftMs = endMs - Date.now();
      if (leftMs <= 0) throw this.#failure(`no event "${beginning}" within ${WAIT_MS} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Pauses (SIGSTOP) and resumes the process. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** Kills it, like a crash. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  /** Stops it gracefully: its session is closed. @returns its exit code */
  async end(): Promise<number | null> {
    this.#child.stdin?.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), WAIT_MS);
    const code = await this.#ended;
    clearTimeout(timer);
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#hasEnded) await this.kill();
  }

  #onText(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#onLine(line);
    this.#changed();
  }

  #onLine(line: string): void {
    const [, number, verdict, answer = ''] = /^(\d+) (ok|error) ?(.*)$/.exec(line) ?? [];
    const asked = this.#asked.get(Number(number));
    if (asked !== undefined) {
      this.#asked.delete(Number(number));
      if (verdict === 'ok') asked.resolve(answer);
      else asked.reject(this.#failure(answer));
    } else if (line.startsWith('event ')) this.#events.push(line.slice('event '.length));
    else this.#output += `${line}\n`;
  }

  #changed(): void {
    const woken = this.#wake;
    this.#wake = [];
    for (const wake of woken) wake();
  }

  #failure(what: string): Error {
    return new Error(this.#output === '' ? what : `${what}; it printed:\n${this.#output}`);
  }
}

let compiled: Promise<string> | null = null;

/** Compiles all programs, unless compiled by an earlier run. @returns the directory of their classes */
function compile(): Promise<string> {
  compiled ??= compileOnce();
  return compiled;
}

async function compileOnce(): Promise<string> {
  const sources = fileURLToPath(new URL('./curator/', import.meta.url));
  const files = readdirSync(sources).map((name) => join(sources, name));
  const sum = createHash('sha256').update(identify(findJava() ?? 'java'));
  for (const file of files) sum.update(readFileSync(file));
  const directory = cachePath(`curator-${sum.digest('hex').slice(0, 16)}`);
  if (existsSync(directory)) return directory;
  mkdirSync(dirname(directory), { recursive: true });
  const unfinished = mkdtempSync(`${directory}-`);
  const args = [...SHORT_JAVA.map((flag) => `-J${flag}`), '-d', unfinished, '-cp', JARS.join(':'), ...files];
  await promisify(execFile)('javac', args);
  try {
    renameSync(unfinished, directory);
  } catch (error) {
    // Another worker may have been faster.
    if (!existsSync(directory)) throw error;
    rmSync(unfinished, { recursive: true });
  }
  return directory;
}
