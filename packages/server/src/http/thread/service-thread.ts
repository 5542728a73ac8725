import type { MessagePort } from 'node:worker_threads';
import type { AnswerHead, Question, ToHttp, ToService } from '../messages.ts';

/** An answer that is coming from the thread of the service. */
export interface Reply extends AnswerHead {
  /** In pieces; must be read to its end or ended by `return`. */
  readonly body: AsyncGenerator<string, void, undefined>;
}

/** Too many questions wait: there is no answer. */
export class BusyError extends Error {
  override readonly name = 'BusyError';

  constructor() {
    super(`${QUESTIONS_MAX} questions wait for an answer already: try again later`);
  }
}

/** The thread of the service, as this thread sees it: questions and answers. */
export class ServiceThread {
  readonly #port: MessagePort;
  readonly #answers = new Map<number, Answer>();
  #lastId = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', (message: ToHttp) => this.#answers.get(message.id)?.onMessage(message));
  }

  send(message: ToService): void {
    this.#port.postMessage(message);
  }

  /**
   * @throws BusyError; not where the question is about health: callers who take their answers slowly, or never, must not make a
   *   healthy server look dead. Its reader has one such question at a time, and there is one upload at a time
   */
  async ask(question: Question): Promise<Reply> {
    const isLone = question.kind === 'health' || question.kind === 'uploaded';
    if (this.#answers.size >= QUESTIONS_MAX && !isLone) throw new BusyError();
    const id = ++this.#lastId;
    const answer = new Answer(
      (parts) => this.send({ kind: 'taken', id, parts }),
      (isWhole) => {
        this.#answers.delete(id);
        if (!isWhole) this.send({ kind: 'drop', id });
      },
    );
    this.#answers.set(id, answer);
    this.send({ kind: 'ask', id, question });
    return { ...(await answer.head), body: answer.body() };
  }

  /** A short answer as a whole. */
  async askAll(question: Question): Promise<{ readonly head: AnswerHead; readonly text: string }> {
    const { body, ...head } = await this.ask(question);
    let text = '';
    for await (const part of body) text += part;
    return { head, text };
  }
}

class Answer {
  readonly head: Promise<AnswerHead>;
  readonly #onTaken: (parts: number) => void;
  readonly #onOver: (isWhole: boolean) => void;
  readonly #parts: string[] = [];
  #onHead: (head: AnswerHead) => void = () => {};
  #wake: () => void = () => {};
  #hasLast = false;

  constructor(onTaken: (parts: number) => void, onOver: (isWhole: boolean) => void) {
    this.#onTaken = onTaken;
    this.#onOver = onOver;
    this.head = new Promise((resolve) => {
      this.#onHead = resolve;
    });
  }

  onMessage(message: ToHttp): void {
    if (message.kind === 'head') {
      this.#hasLast = message.head.file !== null || message.head.upload !== undefined;
      if (this.#hasLast) this.#onOver(true);
      this.#onHead(message.head);
      return;
    }
    this.#parts.push(message.text);
    this.#hasLast = message.isLast;
    this.#wake();
  }

  async *body(): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        if (this.#parts.length > 0) {
          const parts = this.#parts.splice(0);
          if (!this.#hasLast) this.#onTaken(parts.length);
          yield parts.join('');
          continue;
        }
        if (this.#hasLast) return;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.#onOver(this.#hasLast);
    }
  }
}

const QUESTIONS_MAX = 16;
