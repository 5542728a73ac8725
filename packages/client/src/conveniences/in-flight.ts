/**
 * Runs an asynchronous function for each item, started in order, at most `max` at a time. After a failure nothing more
 * is started; it rejects with the first failure once all started ones have ended.
 */
export async function forEachInFlight<T>(
  items: readonly T[],
  max: number,
  run: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  let failure: { readonly error: unknown } | null = null;
  const work = async (): Promise<void> => {
    while (next < items.length && failure === null) {
      try {
        await run(items[next++] as T);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(max, items.length) }, work));
  if (failure !== null) throw (failure as { readonly error: unknown }).error;
}
