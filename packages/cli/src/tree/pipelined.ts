/** Requests in flight at once, where nothing else is said. */
const IN_FLIGHT_MAX = 64;

/**
 * Works on many things concurrently and yields the results in the order of the things. At most `inFlightMax` results
 * are pending or not yet taken, so that memory stays bounded.
 *
 * @throws what `work` rejects with, in order; work that was begun after it continues, and its results are ignored
 */
export async function* pipelined<T, R>(
  things: Iterable<T>,
  work: (thing: T) => Promise<R>,
  inFlightMax: number = IN_FLIGHT_MAX,
): AsyncGenerator<R, void> {
  const begun: Promise<R>[] = [];
  for (const thing of things) {
    const result = work(thing);
    // It may be abandoned by then: that must not end the process.
    result.catch(() => {});
    begun.push(result);
    if (begun.length < inFlightMax) continue;
    const first = begun.shift();
    if (first !== undefined) yield await first;
  }
  for (const result of begun) yield await result;
}
