import { type Data, toBytes } from './data.ts';
import { BadArgumentsError } from './errors.ts';

/** Credentials, sent on each connection. */
export interface Auth {
  readonly scheme: string;
  readonly auth: Uint8Array;
}

/** @throws BadArgumentsError for credentials that cannot be sent; they would fail on every connection otherwise */
export function makeAuth(scheme: string, auth: Data, operation: string): Auth {
  const isData = typeof auth === 'string' || auth === null || auth instanceof Uint8Array;
  if (typeof scheme === 'string' && isData) return { scheme, auth: toBytes(auth) ?? new Uint8Array(0) };
  const detail = `a scheme is text, and its data a string, a Uint8Array or null, not ${typeof scheme} and ${typeof auth}`;
  throw new BadArgumentsError({ operation, path: null, detail });
}
