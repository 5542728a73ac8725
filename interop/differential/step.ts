import type { AclEntry } from '../harness/record-builder.ts';

/**
 * One step of the script, by one of the sessions. It is independent of the server, so that the same step can be sent to
 * both; server-specific values (session id, password, zxids) are filled in on sending.
 */
export type Step = RequestStep | ConnectStep | FrameStep;

/** A request over the slot's connection; it gets one reply, or the connection is closed. */
export interface RequestStep {
  readonly kind: 'request';
  readonly slot: number;
  readonly type: number;
  /** Null: the connection's next positive number. */
  readonly xid: number | null;
  readonly body: Buffer;
  /** The record begins with a zxid (setWatches): it is written before `body`, in the server's numbering. */
  readonly relativeZxid: bigint | null;
  /** Description for reports. */
  readonly text: string;
  /** Facts about the request that identify known differences. */
  readonly facts: StepFacts;
}

export interface StepFacts {
  /** The sub-ops of a multi as (op code, create flags or −1). */
  readonly subOps?: readonly { readonly type: number; readonly flags: number }[];
  /** Paths of the guarded region that the request may create or whose ACL it may change. */
  readonly guardedPaths?: readonly string[];
  /** Scheme and credentials of an `auth` request. */
  readonly auth?: { readonly scheme: string | null; readonly credentials: string | null };
  /** The request's bytes were damaged on purpose. */
  readonly isDamaged?: boolean;
}

/** A new connection of the slot; an existing one is closed first. */
export interface ConnectStep {
  readonly kind: 'connect';
  readonly slot: number;
  /** The requested session. */
  readonly session: 'new' | 'same' | 'unknown' | 'wrong password' | 'null password' | 'short password';
  readonly timeoutMs: number;
  /** The client's lastZxidSeen: the actual one, 0, or one above the server's. */
  readonly lastZxidSeen: 'seen' | 'none' | 'future';
  readonly readOnly: boolean | null;
  /** The existing connection is kept open, and the server has to close it. */
  readonly keepsOldConnection: boolean;
  readonly text: string;
}

/** An invalid frame; the server closes the connection. */
export interface FrameStep {
  readonly kind: 'frame';
  readonly slot: number;
  readonly bytes: Buffer;
  readonly text: string;
}

export function aclText(acl: readonly AclEntry[] | null): string {
  if (acl === null) return 'null';
  return `[${acl.map(({ perms, scheme, id }) => `${perms}:${scheme}:${id}`).join(' ')}]`;
}

export function stepText(step: Step): string {
  return `session ${step.slot}: ${step.text}`;
}
