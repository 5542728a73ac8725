import type { Client } from '@meerkat/client';

/** A client whose replies are counted. */
export interface AnswerCounter {
  readonly client: Client;
  /** Calls back with the nth reply from now on, before it is delivered: no other client can come in between. */
  onAnswer(nth: number, callback: () => void): void;
}

export function countAnswers(counted: Client): AnswerCounter {
  let toCome = 0;
  let onAnswer = (): void => {};
  const client = new Proxy(counted, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        const result: unknown = Reflect.apply(member, target, args);
        if (!(result instanceof Promise)) return result;
        return result.then((answer: unknown) => {
          if (--toCome === 0) onAnswer();
          return answer;
        });
      };
    },
  });
  return {
    client,
    onAnswer: (nth, callback) => {
      toCome = nth;
      onAnswer = callback;
    },
  };
}
