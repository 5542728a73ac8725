/** What a server of `meerkat up` and the process that has started it tell each other. */

/** What a server does, as it tells its parent whenever that changes. */
export interface MemberStatus {
  readonly role: 'looking' | 'leading' | 'following' | 'observing';
  readonly isServing: boolean;
  readonly leader: number | null;
  /** That it has served in last; 0 before the first. */
  readonly epoch: number;
  readonly lastZxid: number;
}

/** Server ids that a server is to be cut off from, from now on. */
export interface Cuts {
  readonly cutFrom: readonly number[];
}

/** Null when it is nothing of the kind. */
export function parseCuts(message: unknown): Cuts | null {
  if (typeof message !== 'object' || message === null || !('cutFrom' in message)) return null;
  const { cutFrom } = message;
  return Array.isArray(cutFrom) && cutFrom.every((id) => Number.isInteger(id)) ? { cutFrom } : null;
}

const ROLES: readonly string[] = ['looking', 'leading', 'following', 'observing'] satisfies MemberStatus['role'][];

/** Null when it is nothing of the kind. */
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
