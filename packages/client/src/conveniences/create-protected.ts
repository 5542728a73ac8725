import { joinPath, nameOf, parentOf } from '@meerkat/protocol';
import type { Data } from '../data.ts';
import { NodeExistsError, NoNodeError } from '../errors.ts';
import type { Random } from '../machine/ports.ts';
import type { Created } from '../machine/replies.ts';
import { asDoubtful } from '../make-error.ts';
import type { CallOptions } from '../requester.ts';
import { Budget, type Surroundings } from '../surroundings.ts';
import type { CreateShape } from '../write-requests.ts';
import { ZooKeeperError } from '../zookeeper-error.ts';
import { ATTEMPTS_MAX, isLoss } from './losses.ts';
import type { Operations } from './operations.ts';

/*
 * When the reply to a create is lost, the znode may or may not exist, and the name of a sequential znode is unknown. So
 * the name gets a unique mark, in the form of Curator's protection mode:
 *
 *     /locks/lock-0000000007   ──►   /locks/_c_5b2f9d0e-5e3b-4f0a-9a44-0c6f3a9f7d21-lock-0000000007
 *
 * After a lost connection the parent's children are listed, after a sync, and the mark identifies the znode. The list
 * is final: the leader refuses requests of the old connection once the session lives on the new one, and the sync waits
 * for those that it accepted before.
 */

export interface CreateProtectedOptions extends CreateShape, CallOptions {
  /** The prefix of the name instead of `_c_<uuid>-`; it must be unique. */
  readonly mark?: string | undefined;
}

/**
 * Creates a znode that is found again when the reply to its creation is lost: it resolves with exactly one znode, or
 * rejects. When it rejects with `outcome: 'unknown'`, because the caller cancelled or the connection was lost too
 * often, a znode that may have been created is deleted in the background, as long as the session lives.
 *
 * An ephemeral znode that an earlier session has left behind is not taken for ours.
 *
 * @param path the last name gets the prefix `_c_<uuid>-`; see `withoutProtection`
 *
 * @example
 * const { path } = await client.createProtected('/locks/lock-', '', { mode: 'ephemeral', sequential: true });
 * // /locks/_c_5b2f9d0e-5e3b-4f0a-9a44-0c6f3a9f7d21-lock-0000000007
 */
export async function createProtected(
  operations: Operations,
  surroundings: Surroundings,
  path: string,
  data?: Data,
  { mark, ...options }: CreateProtectedOptions = {},
): Promise<Created> {
  const about = { operation: 'createProtected', path };
  const budget = new Budget(options, surroundings, about);
  const own = new OwnZnode(operations, path, options, mark ?? `${PREFIX}${makeUuid(surroundings.random)}-`);
  /** A create has been sent and may have been applied. */
  let isDoubtful = false;
  for (let attempt = 1; ; attempt++) {
    try {
      if (isDoubtful) {
        const found = await own.find(budget.next('unknown'));
        if (found !== null) return found;
        isDoubtful = false;
      }
      return await operations.create(own.path, data, { ...options, ...budget.next() });
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
      // The mark is unique: what exists under it was created by an earlier attempt.
      const isOwn = error instanceof NodeExistsError && attempt > 1;
      isDoubtful ||= isOwn || error.outcome === 'unknown';
      if ((isOwn || isLoss(error)) && attempt < ATTEMPTS_MAX) continue;
      if (!isDoubtful) throw error;
      void own.remove();
      throw asDoubtful(error, about);
    }
  }
}

/**
 * The name without the mark of `createProtected`, of Curator's protection mode, if it has one.
 *
 * @example
 * withoutProtection('_c_5b2f9d0e-5e3b-4f0a-9a44-0c6f3a9f7d21-lock-0000000007') === 'lock-0000000007';
 */
export function withoutProtection(name: string): string {
  return PROTECTED.test(name) ? name.slice(MARK_LENGTH) : name;
}

const PREFIX = '_c_';
const PROTECTED = /^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-/i;
/** `_c_`, a UUID of 36 characters, `-`. */
const MARK_LENGTH = 40;

/** The znode with a mark that only one caller uses. */
class OwnZnode {
  /** As passed to `create`: without the sequence number. */
  readonly path: string;
  readonly #operations: Operations;
  readonly #parent: string;
  readonly #shape: CreateShape;

  constructor(operations: Operations, path: string, shape: CreateShape, mark: string) {
    // An invalid path is reported by `create`, with a clear error.
    const parent = parentOf(path);
    this.path = parent === '' ? path : joinPath(parent, mark + nameOf(path));
    this.#operations = operations;
    this.#parent = parent;
    this.#shape = shape;
  }

  /** Looks for it after a sync. An ephemeral znode of another session is not ours. */
  async find(options: CallOptions): Promise<Created | null> {
    const read = { ...options, read: 'linearizable' } as const;
    const prefix = nameOf(this.path);
    const isSequential = this.#shape.sequential === true;
    const { children } = await this.#operations.children(this.#parent, read);
    for (const name of children) {
      if (isSequential ? !name.startsWith(prefix) : name !== prefix) continue;
      const path = joinPath(this.#parent, name);
      const stat = await this.#operations.exists(path, read);
      if (stat === null) continue;
      if (this.#shape.mode === 'ephemeral' && stat.ephemeralOwner !== this.#operations.session?.id) continue;
      return { path, stat };
    }
    return null;
  }

  /**
   * Deletes it if it has been created. Never rejects: when the session ends first, an ephemeral znode is deleted with
   * it.
   */
  async remove(): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      try {
        const found = await this.find({});
        if (found !== null) await this.#operations.delete(found.path, {});
        return;
      } catch (error) {
        if (error instanceof NoNodeError || !isLoss(error)) return;
      }
    }
  }
}

/** A random UUID (RFC 9562, version 4). */
function makeUuid(random: Random): string {
  let hex = '';
  for (let i = 0; i < 4; i++) hex += random.uint32().toString(16).padStart(8, '0');
  const variant = '89ab'.charAt(Number.parseInt(hex.charAt(16), 16) & 3);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}
