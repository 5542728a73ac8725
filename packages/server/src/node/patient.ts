/** What the system says when the process, or the machine, has no descriptor left at this moment. */
const OUT_OF_DESCRIPTORS: ReadonlySet<string | undefined> = new Set(['EMFILE', 'ENFILE']);
const PAUSE_MS = 50;
/** Five seconds: connections that are closed to make room are gone long before. */
const ATTEMPTS_MAX = 100;

/**
 * Attempts something that needs a file descriptor, and retries while none is free: a log file that cannot be opened
 * would end the server.
 *
 * @param attempt calls back once
 * @param isCancelled asked before each further attempt
 */
export function retryOnShortage<T>(
  attempt: (done: (error: NodeJS.ErrnoException | null, value: T) => void) => void,
  isCancelled: () => boolean,
  done: (error: NodeJS.ErrnoException | null, value: T) => void,
  attemptsLeft: number = ATTEMPTS_MAX,
): void {
  attempt((error, value) => {
    if (!OUT_OF_DESCRIPTORS.has(error?.code) || attemptsLeft === 1 || isCancelled()) done(error, value);
    else setTimeout(() => retryOnShortage(attempt, isCancelled, done, attemptsLeft - 1), PAUSE_MS);
  });
}
