/** Whether the service of a session supports addWatch; a promise while the first request is in flight. */
const SUPPORT: WeakMap<object, boolean | Promise<void>> = new WeakMap();

/**
 * Sends an addWatch if the service supports it.
 *
 * A service older than 3.6 answers that the operation is unknown and closes the connection. So the first call on a
 * session is sent alone, and its answer applies to all.
 *
 * @param session its users share the answer
 * @param ask sends an addWatch. false: the service does not support it
 * @returns false when the service does not support it
 */
export async function withAddWatch(session: object, ask: () => Promise<boolean>): Promise<boolean> {
  for (;;) {
    const support = SUPPORT.get(session);
    if (support === false) return false;
    if (support === true) return await ask();
    if (support === undefined) break;
    await support;
  }
  const asked = ask();
  SUPPORT.set(
    session,
    asked.then(
      (isSupported) => void SUPPORT.set(session, isSupported),
      // There was no answer, so the next call asks.
      () => void SUPPORT.delete(session),
    ),
  );
  return await asked;
}
