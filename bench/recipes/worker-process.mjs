// The parent's side of a worker: one library in its own process, controlled by text lines.
//
//   → start lock /bench/kazoo-3 50     starts 50 participants; answered when each of them has had a turn
//   → mark                             starts a slice
//   → read                             ends it: `ok <cycles> <µs> <latency in µs>,…`
//   → stop                             stops all participants
//   ← ok …   or   error …              reply to each command
import { createInterface } from 'node:readline';
import { exited, start } from '../processes.mjs';

/** Starting hundreds of threads on a busy machine takes minutes; a worker that never answers would keep the lock. */
const PATIENCE_MS = 600_000;

export class WorkerProcess {
  #child;
  #lines;

  /** @param command a program and its arguments; the address of the server is appended */
  constructor(name, command, port) {
    this.name = name;
    const [program, ...args] = command;
    this.#child = start(program, [...args, `127.0.0.1:${port}`], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdin.on('error', () => {});
    this.#lines = createInterface({ input: this.#child.stdout });
  }

  /** @returns the text after `ok` */
  ask(...words) {
    const answer = this.#answer(words[0]);
    this.#child.stdin.write(`${words.join(' ')}\n`);
    return answer;
  }

  /** Closes its sessions. */
  async end() {
    this.#child.stdin.end();
    const patience = setTimeout(() => this.#child.kill('SIGKILL'), 60_000);
    await exited(this.#child);
    clearTimeout(patience);
  }

  async #answer(verb) {
    const ended = new AbortController();
    try {
      return await new Promise((resolve, reject) => {
        const fail = (what) => reject(new Error(`${this.name}, ${verb}: ${what}`));
        const onExit = (code, signal) => fail(`the process ended with ${signal ?? code}`);
        const onError = (error) => fail(error.message);
        const { exitCode, signalCode } = this.#child;
        if (exitCode !== null || signalCode !== null) onExit(exitCode, signalCode);
        const onLine = (line) => {
          const [verdict] = line.split(' ', 1);
          const rest = line.slice(verdict.length + 1);
          if (verdict === 'ok') resolve(rest);
          else fail(rest);
        };
        const patience = setTimeout(() => fail('no answer'), PATIENCE_MS);
        this.#child.once('exit', onExit).once('error', onError);
        this.#lines.once('line', onLine);
        ended.signal.addEventListener('abort', () => {
          clearTimeout(patience);
          this.#child.off('exit', onExit).off('error', onError);
          this.#lines.off('line', onLine);
        });
      });
    } finally {
      ended.abort();
    }
  }
}
