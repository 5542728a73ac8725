/**
 * Commitment as a type: a watermark that says "a quorum holds everything up to here durably".
 *
 * Only the broadcast makes one, from the ack set of a quorum (for a single server: from its own `Durable`). The reply
 * to a write is made from one.
 */
declare const committed: unique symbol;
export type Committed<T> = T & { readonly [committed]: true };
