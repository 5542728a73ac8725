/** A promise and its settling functions. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (error: unknown) => void;
}

export function makeDeferred<T>(): Deferred<T> {
  let resolve: (value: T | PromiseLike<T>) => void = nothing;
  let reject: (error: unknown) => void = nothing;
  const promise = new Promise<T>((fulfil, refuse) => {
    resolve = fulfil;
    reject = refuse;
  });
  return { promise, resolve, reject };
}

/** Like `makeDeferred`; an unhandled rejection does not end the process. */
export function makeQuietDeferred<T>(): Deferred<T> {
  const deferred = makeDeferred<T>();
  deferred.promise.catch(nothing);
  return deferred;
}

function nothing(): void {}
