/** Whether the service of a session knows addWatch; a promise while the first one asks. */
const SUPPORT: WeakMap<object, boolean | Promise<void>> = new WeakMap();

/**
 * Sends an addWatch where that makes sense.
 *
 * A service older than 3.6 answers that it does not know the operation and closes the connection. So the first one who
 * shares a session asks alone, and there is no second question.
 *
 * @param session those who share it know what one of them has learnt
 * @param ask sends an addWatch. false: the service does not know it
 * @returns false when the service does not know it
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
      // Nothing has been learnt, so the next one asks.
      () => void SUPPORT.delete(session),
    ),
  );
  return await asked;
}
