import type { AclEntry } from '../harness/record-builder.ts';

/**
 * One step of the script: what one of the sessions does next. It says nothing about the server, so that the same step
 * can be sent to two of them; what belongs to a server (session id, password, its own zxids) is filled in on sending.
 */
export type Step = RequestStep | ConnectStep | FrameStep;

/** A request over the slot's connection; one reply, or the connection closes. */
export interface RequestStep {
  readonly kind: 'request';
  readonly slot: number;
  readonly type: number;
  /** Null takes the connection's next positive number. */
  readonly xid: number | null;
  readonly body: Buffer;
  /** The record begins with a zxid (setWatches): it goes before `body`, translated into the server's own count. */
  readonly relativeZxid: bigint | null;
  /** For people. */
  readonly text: string;
  /** Facts about the request that decide whether a difference is a known one. */
  readonly facts: StepFacts;
}

export interface StepFacts {
  /** The sub-ops of a multi as (op code, create flags or −1). */
  readonly subOps?: readonly { readonly type: number; readonly flags: number }[];
  /** Paths of the guarded region that the request may create or whose ACL it may change. */
  readonly guardedPaths?: readonly string[];
  /** Sent through the `auth` op: scheme and credentials. */
  readonly auth?: { readonly scheme: string | null; readonly credentials: string | null };
  /** The request's bytes were damaged on purpose. */
  readonly isDamaged?: boolean;
}

/** A new connection of the slot; an older one is dropped first. */
export interface ConnectStep {
  readonly kind: 'connect';
  readonly slot: number;
  /** Which session is asked for. */
  readonly session: 'new' | 'same' | 'unknown' | 'wrong password' | 'null password' | 'short password';
  readonly timeoutMs: number;
  /** What the client says it has seen: what it has, nothing, or more than the server has. */
  readonly lastZxidSeen: 'seen' | 'none' | 'future';
  readonly readOnly: boolean | null;
  /** The older connection is left open, and the server has to close it. */
  readonly keepsOldConnection: boolean;
  readonly text: string;
}

/** Bytes that are no valid frame; the server closes. */
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
