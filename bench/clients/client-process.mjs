// The parent's side of a worker: one client in its own process.
import { fileURLToPath } from 'node:url';
import { exited, start } from '../processes.mjs';

/** A client that loses an operation would block the run and keep the lock. */
const PATIENCE_MS = 30_000;
const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));

export class ClientProcess {
  #child;

  constructor(name, { port, root, directory }) {
    this.name = name;
    this.#child = start(process.execPath, [WORKER, name, String(port), root, directory], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
  }

  get pid() {
    return this.#child.pid;
  }

  /** Resolves once it is connected and its znodes exist. */
  ready() {
    return this.#answer();
  }

  slice(request) {
    this.#child.send(request);
    return this.#answer();
  }

  async end() {
    this.#child.disconnect();
    await exited(this.#child);
  }

  #answer() {
    return new Promise((resolve, reject) => {
      const onExit = (code, signal) => reject(new Error(`the process of ${this.name} ended with ${signal ?? code}`));
      const patience = setTimeout(() => reject(new Error(`${this.name}: an operation is never answered`)), PATIENCE_MS);
      this.#child.once('exit', onExit);
      this.#child.once('message', (answer) => {
        clearTimeout(patience);
        this.#child.off('exit', onExit);
        if (answer.error === undefined) resolve(answer);
        else reject(new Error(`${this.name}: ${answer.error}`));
      });
    });
  }
}
