/** Our own mistake: what must be true was not. It stops the server it happened in. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** States what must be true; stays on in production. */
export function assert(condition: boolean, whatMustHold: string): asserts condition {
  if (!condition) throw new AssertionError(`this must hold and does not: ${whatMustHold}`);
}
