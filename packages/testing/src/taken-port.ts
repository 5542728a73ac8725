/**
 * Repeats an attempt to listen while the port is taken, for a short time.
 *
 * A port that was free a moment ago may be in use for another moment: by a connection on its way out that the system has
 * given this number, or by a client that connected to itself while nothing listened.
 */
export async function whilePortIsTaken<T>(attempt: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + TAKEN_MS_MAX;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isPortTaken(error) || performance.now() >= endMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

const TAKEN_MS_MAX = 3000;
const AGAIN_MS = 20;

export function isPortTaken(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EADDRINUSE') return true;
  }
  return false;
}
