import type { Health, HealthCheck } from '../../admin/health.ts';
import type { ServiceThread } from './service-thread.ts';

/** Asks the service how it is, ten times a second at most, one question at a time. One that does not answer is not alive. */
export class HealthReader {
  readonly #service: ServiceThread;
  #askedMs = Number.NEGATIVE_INFINITY;
  #health: Promise<Health> | null = null;
  /** The question that has no answer yet; it may be older than what was told of it. */
  #question: Promise<Health> | null = null;

  constructor(service: ServiceThread) {
    this.#service = service;
  }

  read(): Promise<Health> {
    const nowMs = performance.now();
    if (this.#health === null || nowMs - this.#askedMs > AGE_MS) {
      this.#askedMs = nowMs;
      this.#health = this.#ask();
    }
    return this.#health;
  }

  async #ask(): Promise<Health> {
    this.#question ??= this.#service.askAll({ kind: 'health' }).then(({ text }) => {
      this.#question = null;
      return JSON.parse(text) as Health;
    });
    const answer = this.#question;
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<Health>((resolve) => {
      timer = setTimeout(() => resolve(SILENT), SILENCE_MS);
    });
    try {
      return await Promise.race([answer, silence]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** `ok`, or a line for each check as Kubernetes and etcd write them. */
export function formatChecks(checks: readonly HealthCheck[], isVerbose: boolean, what: string): string {
  const isOk = checks.every((check) => check.isOk);
  if (isOk && !isVerbose) return 'ok';
  const lines = checks.map(
    (check) => `[${check.isOk ? '+' : '-'}]${check.name} ${check.isOk ? 'ok' : 'failed'}: ${check.detail}`,
  );
  return `${lines.join('\n')}\n${what} check ${isOk ? 'passed' : 'failed'}\n`;
}

const AGE_MS = 100;
const SILENCE_MS = 5000;
const LOOP = {
  name: 'event-loop',
  isOk: false,
  detail: `the thread of the service has not answered for ${SILENCE_MS} ms`,
};
const SILENT: Health = { live: [LOOP], ready: [LOOP] };
