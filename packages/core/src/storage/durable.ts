/**
 * Durability as a type: a watermark that says "everything up to here survives the end of the machine".
 *
 * Only the storage makes one, after the disk has reported a sync. An acknowledgement is made from a `Durable`; so what
 * has not been synced cannot be acknowledged without a cast, and a test looks for casts.
 */
declare const durable: unique symbol;
export type Durable<T> = T & { readonly [durable]: true };
