import { Worker } from 'node:worker_threads';
import type { Logger } from '../logger.ts';
import { isSingleFile, threadScript } from '../single-file.ts';
import type {
  AnswerHead,
  ConsolePlace,
  HttpPort,
  HttpThreadData,
  ListenPlace,
  Question,
  ToHttp,
  ToService,
} from './messages.ts';
import { PARTS_MAX } from './messages.ts';
import { isSystemFault } from './options.ts';
import { WorkBudget } from './work-budget.ts';

/** The answer to a question. */
export interface Answer extends AnswerHead {
  /** The text in pieces, which are generated a few at a time while others are served. */
  readonly pieces: Iterable<string>;
}

/** Answers questions. */
export interface QuestionHandler {
  /** An error that it throws or rejects with is a bug. */
  answer(question: Question): Answer | Promise<Answer>;
  /** The HTTP thread has ended: uploads in progress will not be reported. */
  onThreadLost(): void;
  /** Called when the server stops: no more questions follow. */
  stop(): void;
}

/** The part of `Worker` that is used; tests pass a fake. */
export type HttpWorker = Pick<Worker, 'on' | 'postMessage' | 'terminate' | 'unref'>;

/**
 * The HTTP servers of a server, in a thread of their own: connections, headers, bodies and slow readers cost the service
 * nothing. The service answers questions, as far as its `WorkBudget` goes.
 *
 * Nothing here ends the server: a port that is in use is a warning, and a thread that dies is started again.
 */
export class HttpThread {
  readonly #data: Omit<HttpThreadData, 'console'>;
  readonly #console: () => ConsolePlace | null;
  readonly #desk: QuestionHandler;
  readonly #logger: Logger;
  readonly #budget = new WorkBudget();
  readonly #answers = new Map<number, AnswerInParts>();
  readonly #listening = new Map<HttpPort, ListenPlace>();
  readonly #spawn: (data: HttpThreadData) => HttpWorker;
  #worker: HttpWorker | null = null;
  #restart: NodeJS.Timeout | null = null;
  #restartMs = RESTART_MS;

  /** @param console where the console finds its service: known when this starts, and not before */
  constructor(
    data: Omit<HttpThreadData, 'console'>,
    desk: QuestionHandler,
    logger: Logger,
    console: () => ConsolePlace | null,
    spawn: (data: HttpThreadData) => HttpWorker = spawnWorker,
  ) {
    this.#spawn = spawn;
    this.#data = data;
    this.#console = console;
    this.#desk = desk;
    this.#logger = logger;
  }

  /** The address of an open port; null while it is closed. */
  addressOf(port: HttpPort): ListenPlace | null {
    return this.#listening.get(port) ?? null;
  }

  start(): void {
    const worker = this.#spawn({ ...this.#data, console: this.#console() });
    this.#worker = worker;
    // Late messages of a former thread are ignored.
    worker.on('message', (message: ToService) => {
      if (this.#worker === worker) this.#onMessage(message);
    });
    worker.on('error', (error) => this.#onDead(worker, error.message));
    worker.on('exit', (code) => this.#onDead(worker, `exit code ${code}`));
    // It does not keep the process alive.
    worker.unref();
  }

  async stop(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    if (this.#restart !== null) clearTimeout(this.#restart);
    this.#desk.stop();
    this.#budget.stop();
    this.#answers.clear();
    this.#listening.clear();
    await worker?.terminate();
  }

  #onDead(worker: HttpWorker, reason: string): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    for (const answer of this.#answers.values()) answer.drop();
    this.#answers.clear();
    this.#listening.clear();
    this.#desk.onThreadLost();
    const seconds = this.#restartMs / 1000;
    const text = `the thread of the HTTP ports has ended (${reason}): admin commands and metrics are answered again in ${seconds} s; clients are served as before`;
    this.#logger.log('error', text, { event: 'http-failed', reason });
    this.#restart = setTimeout(() => this.start(), this.#restartMs);
    this.#restart.unref();
    this.#restartMs = Math.min(RESTART_MS_MAX, this.#restartMs * 2);
  }

  #onMessage(message: ToService): void {
    switch (message.kind) {
      case 'listening':
        this.#onListening(message.port, message.at, message.scheme);
        return;
      case 'log':
        this.#logger.log(message.level, message.text);
        return;
      case 'failed':
        this.#logger.log('warn', describeFailure(message.port, message.at, message.reason), {
          event: 'http-failed',
          reason: message.reason,
        });
        return;
      case 'ask':
        void this.#onAsked(message.id, message.question, this.#worker);
        return;
      case 'taken':
        this.#answers.get(message.id)?.onTaken(message.parts);
        return;
      case 'drop':
        this.#answers.get(message.id)?.drop();
        this.#answers.delete(message.id);
        return;
    }
  }

  #onListening(port: HttpPort, at: ListenPlace, scheme: string): void {
    this.#listening.set(port, at);
    const host = at.host.includes(':') ? `[${at.host}]` : at.host;
    const place = `${scheme.split(' ')[0]}://${host}:${at.port}`;
    const text =
      port === 'admin'
        ? `admin commands are answered at ${place}${this.#data.admin?.commandUrl ?? ''}`
        : `metrics are answered at ${place}/metrics`;
    this.#logger.log('info', text, { event: `${port}-listening`, host: at.host, port: at.port, scheme });
  }

  async #onAsked(id: number, question: Question, asker: HttpWorker | null): Promise<void> {
    let answer: Answer;
    try {
      answer = await this.#desk.answer(question);
    } catch (error) {
      this.#logger.log('error', `a question by HTTP could not be answered: ${describe(error)}`, {
        event: 'http-failed',
      });
      answer = { ...FAILED, pieces: ['the server could not answer; its log says why\n'] };
    }
    // Another thread has questions of its own by these numbers.
    if (this.#worker !== asker) return;
    const { pieces, ...head } = answer;
    this.#send({ kind: 'head', id, head });
    if (head.file !== null || head.upload !== undefined) return;
    const parts = new AnswerInParts(
      pieces,
      (text, isLast) => {
        if (isLast) this.#answers.delete(id);
        this.#send({ kind: 'part', id, text, isLast });
      },
      (error) => {
        this.#answers.delete(id);
        this.#logger.log('error', `an answer by HTTP was cut short: ${describe(error)}`, { event: 'http-failed' });
        this.#send({ kind: 'part', id, text: '', isLast: true });
      },
      (steps) => {
        // Not subject to the budget: the answer is short, and a prober that gets none restarts the server.
        if (question.kind === 'health') while (steps.next().done !== true);
        else this.#budget.add(steps);
      },
    );
    this.#answers.set(id, parts);
    parts.goOn();
  }

  #send(message: ToHttp): void {
    this.#worker?.postMessage(message);
  }
}

/** An answer on its way: made while there is time for it, and while the other side takes it. */
class AnswerInParts {
  readonly #pieces: Iterator<string>;
  readonly #send: (text: string, isLast: boolean) => void;
  readonly #fail: (error: unknown) => void;
  readonly #schedule: (steps: Iterator<void>) => void;
  #text = '';
  #partsLeft = PARTS_MAX;
  #isScheduled = false;
  #isOver = false;

  constructor(
    pieces: Iterable<string>,
    send: (text: string, isLast: boolean) => void,
    fail: (error: unknown) => void,
    schedule: (steps: Iterator<void>) => void,
  ) {
    this.#pieces = pieces[Symbol.iterator]();
    this.#send = send;
    this.#fail = fail;
    this.#schedule = schedule;
  }

  onTaken(parts: number): void {
    this.#partsLeft += parts;
    this.goOn();
  }

  drop(): void {
    this.#isOver = true;
  }

  goOn(): void {
    if (this.#isScheduled || this.#isOver || this.#partsLeft <= 0) return;
    this.#isScheduled = true;
    this.#schedule(this.#steps());
  }

  *#steps(): Generator<void> {
    try {
      while (!this.#isOver && this.#partsLeft > 0) {
        for (let i = 0; i < PIECES_PER_STEP && !this.#isOver && this.#text.length < PART_LENGTH; i++) this.#takeOne();
        if (this.#text.length >= PART_LENGTH) this.#sendPart(false);
        yield;
      }
    } catch (error) {
      this.#isOver = true;
      this.#fail(error);
    }
    this.#isScheduled = false;
  }

  #takeOne(): void {
    const next = this.#pieces.next();
    if (next.done !== true) this.#text += next.value;
    else this.#sendPart(true);
  }

  #sendPart(isLast: boolean): void {
    this.#send(this.#text, isLast);
    this.#text = '';
    this.#partsLeft--;
    this.#isOver ||= isLast;
  }
}

function spawnWorker(workerData: HttpThreadData): HttpWorker {
  return new Worker(isSingleFile() ? threadScript('http-thread') : entry(), {
    eval: isSingleFile(),
    workerData,
    name: 'meerkat-http',
    // Options of the process, such as a profiler, are not for this thread.
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: workerData.console === null ? 128 : 512 },
  });
}

/** After the first end of a thread; twice as long after each further one. */
const RESTART_MS = 1000;
const RESTART_MS_MAX = 60_000;

const PIECES_PER_STEP = 64;
/** Characters that are handed over together. */
const PART_LENGTH = 65_536;

const FAILED: AnswerHead = { status: 500, contentType: 'text/plain', headers: {}, file: null };

/** Sources cannot be run by a thread of every Node.js: then it is what was built of them. */
function entry(): URL {
  const here = import.meta.url;
  return here.endsWith('.ts')
    ? new URL(here.replace(/\/src\/http\/[^/]*$/, '/dist/http/thread/main.js'))
    : new URL('./thread/main.js', here);
}

function describeFailure(port: HttpPort, { host, port: number }: ListenPlace, reason: string): string {
  const what = port === 'admin' ? 'admin commands' : 'metrics';
  const key = KEY_OF[port];
  const off = port === 'admin' ? ', or admin.enableServer=false' : '';
  const why = reason === 'EADDRINUSE' ? 'it is in use' : reason;
  // What is wrong with a store says itself what to do.
  const advice = isSystemFault(reason) ? `set another ${key}${off}` : 'it is tried again';
  return `cannot listen on ${host}:${number} for ${what}: ${why}; ${advice}. Clients are served as before`;
}

const KEY_OF: Readonly<Record<HttpPort, string>> = {
  admin: 'admin.serverPort',
  metrics: 'metricsProvider.httpPort',
  'secure-metrics': 'metricsProvider.httpsPort',
};

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
