import { afterEach, beforeEach } from 'vitest';

/**
 * Collects the unhandled rejections of each test of the file or group in which it is called.
 *
 * @returns those so far, once the promise jobs have run
 */
export function watchUnhandledRejections(): () => Promise<readonly unknown[]> {
  let unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => {
    unhandled.push(error);
  };
  beforeEach(() => {
    unhandled = [];
    process.on('unhandledRejection', onUnhandled);
  });
  afterEach(() => {
    process.off('unhandledRejection', onUnhandled);
  });
  return async () => {
    // Node reports them after the promise jobs have run.
    await new Promise((resolve) => setImmediate(resolve));
    return unhandled;
  };
}
