import { afterEach, beforeEach } from 'vitest';

/**
 * Collects the unhandled rejections of each test of the file or group in which it is called.
 *
 * @returns those so far, once all promises have had their turn
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
    // Node reports them when all promises have had their turn.
    await new Promise((resolve) => setImmediate(resolve));
    return unhandled;
  };
}
