/** Requests in flight at once, where nothing else is said. */
const IN_FLIGHT_MAX = 64;

/**
 * Works on many things at once and gives the results in the order of the things. At most `inFlightMax` have been begun
 * and not been taken, so that memory stays bounded however many there are.
 *
 * @throws whatever `work` rejects with, when its turn comes; what was begun behind it is left to itself
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
