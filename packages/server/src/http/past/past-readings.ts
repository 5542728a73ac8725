import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { openPastService, type PastStates, type PastTree, type PastTrees, Refusal } from '@meerkat/console';
import { ArchiveError } from '../../archive/archive-error.ts';
import { isSingleFile, threadScript } from '../../single-file.ts';
import { type PastAnswer, type PastFiles, type PastQuestion, type PastThreadData, STREAM_OPEN } from './messages.ts';

/** What is known of the server whose past it is. */
export interface PastSource {
  readonly files: PastFiles;
  /** The last zxid that is applied. */
  lastZxid(): Promise<number>;
  /** Of the clients that are connected. By session id, unsigned. */
  addresses(): Promise<ReadonlyMap<bigint, string>>;
}

/** What is needed of a thread: of Node.js', unless a test has another one. */
export type PastWorker = Pick<Worker, 'on' | 'postMessage' | 'terminate'>;

type StreamEvents = Parameters<Parameters<typeof openPastService>[0]['connect']>[0];
type AnswerTo<Q extends PastQuestion> = Extract<PastAnswer, { readonly kind: Q['kind'] }>;

/**
 * The past of the server that this is in, read from its own files: for its console.
 *
 * Each reading is a thread, so it costs neither the thread of the service nor that of the HTTP ports a turn, and its memory is
 * released with it. There is one at a time; what has been read of a tree stays in its thread until the tree is closed.
 */
export class PastReadings implements PastTrees {
  readonly #source: PastSource;
  readonly #spawn: (data: PastThreadData) => PastWorker;
  readonly #workers = new Set<PastWorker>();
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isClosed = false;

  constructor(source: PastSource, spawn: (data: PastThreadData) => PastWorker = spawnWorker) {
    this.#source = source;
    this.#spawn = spawn;
  }

  async span(): ReturnType<PastTrees['span']> {
    const { answer } = await this.#inTurn(() => this.#ask({ kind: 'span' }));
    return answer.span;
  }

  async states(path: string): Promise<PastStates> {
    const { answer } = await this.#inTurn(async () => {
      const addresses = await this.#source.addresses();
      return await this.#ask({ kind: 'states', path, addresses });
    });
    return answer.found;
  }

  open(moment: string): Promise<PastTree | null> {
    return this.#inTurn(async () => {
      const { answer, worker } = await this.#ask({ kind: 'tree', moment });
      if (answer.tree === null) {
        await worker.terminate();
        return null;
      }
      const ended = new AbortController();
      worker.on('exit', () => ended.abort());
      const service = {
        connect: (events: StreamEvents) => new ThreadStream(worker, events),
        stop: async () => void (await worker.terminate()),
      };
      const past = await openPastService(service, { signal: ended.signal });
      // Calls that wait for a thread that has died must fail.
      worker.on('exit', () => void past.client.close().catch(() => {}));
      return { ...answer.tree, ...past };
    });
  }

  /** What waits for its turn is not read either. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#workers].map((worker) => worker.terminate()));
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= WAITING_MAX) {
      throw new Refusal(
        429,
        'too-many',
        `${WAITING_MAX} readings of the past wait for each other: try again in a moment`,
      );
    }
    this.#waiting++;
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    try {
      return await turn;
    } finally {
      this.#waiting--;
    }
  }

  async #ask<Q extends PastQuestion>(
    question: Q,
  ): Promise<{ readonly answer: AnswerTo<Q>; readonly worker: PastWorker }> {
    const committed = await this.#source.lastZxid();
    if (this.#isClosed) throw new Error('past states can no longer be read: the server is stopping');
    const worker = this.#spawn({ files: this.#source.files, committed, question });
    this.#workers.add(worker);
    const answer = await new Promise<PastAnswer>((resolve, reject) => {
      worker.on('message', resolve);
      worker.on('error', (error) => (isOutOfMemory(error) ? resolve({ kind: 'too-large' }) : reject(error)));
      worker.on('exit', (code) => {
        this.#workers.delete(worker);
        reject(new Error(`the thread that reads the past has ended: exit code ${code}`));
      });
    });
    if (answer.kind === question.kind) return { answer: answer as AnswerTo<Q>, worker };
    await worker.terminate();
    if (answer.kind === 'failed') throw new ArchiveError(answer.fault, answer.text);
    throw new Refusal(413, 'too-large', TOO_LARGE);
  }
}

/** The end of a client: the other one is in the thread. */
class ThreadStream {
  readonly #port: MessagePort;
  #isOver = false;

  constructor(worker: PastWorker, events: StreamEvents) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (message: typeof STREAM_OPEN | Uint8Array) => {
      if (this.#isOver) return;
      if (message === STREAM_OPEN) events.onOpen();
      else events.onBytes(message);
    });
    port1.on('close', () => {
      if (!this.#isOver) events.onClosed(null, 'the thread of the past has ended');
    });
    worker.postMessage(port2, [port2]);
  }

  write(bytes: Uint8Array): boolean {
    // A view would be sent with all of its memory.
    this.#port.postMessage(Uint8Array.from(bytes));
    return true;
  }

  destroy(): void {
    this.#isOver = true;
    this.#port.close();
  }
}

function spawnWorker(workerData: PastThreadData): PastWorker {
  const isSingle = isSingleFile();
  return new Worker(isSingle ? threadScript('past-thread') : entry(), {
    eval: isSingle,
    workerData,
    name: 'meerkat-past',
    // Options of the process, such as a profiler, are not for this thread.
    execArgv: [],
    // A tree is in buffers.
    resourceLimits: { maxOldGenerationSizeMb: 192 },
  });
}

function isOutOfMemory(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY';
}

/** Sources cannot be run by a thread of every Node.js: then it is what was built of them. */
function entry(): URL {
  const here = import.meta.url;
  return here.endsWith('.ts')
    ? new URL(here.replace(/\/src\/http\/past\/[^/]*$/, '/dist/http/past/main.js'))
    : new URL('./main.js', here);
}

const WAITING_MAX = 4;
const TOO_LARGE =
  'the tree of that moment takes more memory than a server has for it: "meerkat console --admin" and "meerkat tree --at" read it elsewhere';
