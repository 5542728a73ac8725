/** Messages between a server of `meerkat up` and its parent process. */

/** The status of a server, sent to its parent whenever it changes. */
export interface MemberStatus {
  readonly role: 'looking' | 'leading' | 'following' | 'observing';
  readonly isServing: boolean;
  readonly leader: number | null;
  /** The epoch in which it last served; 0 before the first. */
  readonly epoch: number;
  readonly lastZxid: number;
}

/** The ids of the servers from which a server is cut off from now on. */
export interface Cuts {
  readonly cutFrom: readonly number[];
}

/** Null for any other message. */
export function parseCuts(message: unknown): Cuts | null {
  if (typeof message !== 'object' || message === null || !('cutFrom' in message)) return null;
  const { cutFrom } = message;
  return Array.isArray(cutFrom) && cutFrom.every((id) => Number.isInteger(id)) ? { cutFrom } : null;
}

const ROLES: readonly string[] = ['looking', 'leading', 'following', 'observing'] satisfies MemberStatus['role'][];

/** Null for any other message. */
export function parseStatus(message: unknown): MemberStatus | null {
  return isStatus(message) ? message : null;
}

function isStatus(message: unknown): message is MemberStatus {
  if (typeof message !== 'object' || message === null) return false;
  const { role, isServing, leader, epoch, lastZxid } = message as Partial<Record<keyof MemberStatus, unknown>>;
  return (
    typeof role === 'string' &&
    ROLES.includes(role) &&
    typeof isServing === 'boolean' &&
    (leader === null || typeof leader === 'number') &&
    typeof epoch === 'number' &&
    typeof lastZxid === 'number'
  );
}
