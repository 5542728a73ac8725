/** An internal error: an invariant does not hold. It stops the server in which it happened. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** Throws unless an invariant holds; enabled in production too. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new AssertionError(`invariant violated: ${invariant}`);
}
