import { EMPTY_BYTES } from '@meerkat/protocol';
import { nullableBytes } from '../codec/bytes.ts';
import { decodeAt } from '../codec/decode-at.ts';
import { type Data, toBytes } from '../data.ts';
import { BadVersionError, NodeExistsError, NoNodeError } from '../errors.ts';
import type { Znode } from '../machine/replies.ts';
import type { Stat } from '../machine/stat.ts';
import { asDoubtful } from '../make-error.ts';
import type { About, CallOptions, ReadOptions } from '../requester.ts';
import { Budget, type Surroundings } from '../surroundings.ts';
import type { CreateShape } from '../write-requests.ts';
import { ZooKeeperError } from '../zookeeper-error.ts';
import { isNextVersion, isSameData } from './idempotent.ts';
import { ATTEMPTS_MAX, isDoubtfulLoss, isLoss } from './losses.ts';
import type { Operations } from './operations.ts';

export interface UpdateOptions extends CallOptions {
  /**
   * The change may be applied twice, and another client's identical change may be taken for ours: continues when the
   * outcome of a write stays unknown. Right for a switch; wrong for a counter. Default false.
   */
  readonly idempotent?: boolean | undefined;
}

/** `create: true`: a missing znode is created, and the function gets null. */
export interface UpdateOrCreateOptions extends UpdateOptions, CreateShape {
  readonly create: true;
  readonly sequential?: never;
}

/** A codec that encodes more than it decodes: text may be written where bytes are read. */
export interface UpdateCodec<Current extends Next, Next> {
  decode(data: Uint8Array | null): Current | Promise<Current>;
  encode(value: Next): Uint8Array | null;
}

/**
 * Returns the new value for the current one, or undefined to leave the znode unchanged. It may be called several times,
 * so it should have no side effects.
 */
export type Change<Current, Next, Missing = never> = (
  current: Current | Missing,
  stat: Stat | Missing,
) => Next | undefined | Promise<Next | undefined>;

/** `update` without a codec: the function gets bytes and may return text. */
export const DATA_CODEC: UpdateCodec<Uint8Array, Data> = {
  decode: (data) => data ?? EMPTY_BYTES,
  encode: toBytes,
};

/**
 * Reads, calls `change`, and writes the result if the znode was not changed meanwhile; otherwise starts over, until it
 * succeeds or the caller cancels.
 *
 * The change is applied once or not at all. When a lost connection leaves the outcome of a write unknown, the znode is
 * read again. If that shows that the write was not applied, it continues; if not, because another client may have
 * written the same or something newer, it rejects with the error of the lost connection, `outcome: 'unknown'`.
 *
 * @returns the current znode; null when it is missing and the function left it so
 *
 * @example
 * await client.update('/visits', (data) => `${Number(new TextDecoder().decode(data)) + 1}`);
 */
export async function update<Current extends Next, Next>(
  operations: Operations,
  surroundings: Surroundings,
  path: string,
  change: Change<Current, Next, null>,
  codec: UpdateCodec<Current, Next>,
  options: UpdateOptions | UpdateOrCreateOptions = {},
): Promise<Znode<Current> | null> {
  const about = { operation: 'update', path };
  const budget = new Budget(options, surroundings, about);
  const shape = 'create' in options ? options : null;
  let losses = 0;
  for (let round = 1; ; round++) {
    // A lagging server is detected by the failed write; later rounds wait until it has caught up.
    const read = round === 1 ? 'local' : 'linearizable';
    const found = await find(operations, path, { ...budget.next(), read }, shape !== null);
    const current = found === null ? null : await decodeAt<Current>(codec, found.data, path, 'update');
    const next = await change(current, found === null ? null : found.stat);
    if (next === undefined) return found === null ? null : { data: current as Current, stat: found.stat };
    const data = codec.encode(next);
    try {
      const stat = await write(operations, path, data, found, shape, budget.next());
      return { data: await decodeAt<Current>(codec, data, path, 'update'), stat };
    } catch (error) {
      if (isRace(error, found)) {
        const pauseMs = pauseAfter(round, surroundings.random.uint32());
        if (pauseMs > 0) await budget.pause(pauseMs);
        continue;
      }
      if (!isLoss(error) || ++losses >= ATTEMPTS_MAX) throw error;
      if (!isDoubtfulLoss(error)) continue;
      const present = await findAfterLoss(operations, path, budget, about);
      const outcome = outcomeOf(found, present, data);
      if (outcome === 'not-applied') continue;
      if (options.idempotent !== true) throw error;
      if (outcome === 'as-wanted' && present !== null)
        return { data: await decodeAt<Current>(codec, data, path, 'update'), stat: present.stat };
    }
  }
}

type Found = Znode<Uint8Array | null>;

async function find(
  operations: Operations,
  path: string,
  options: ReadOptions,
  mayBeMissing: boolean,
): Promise<Found | null> {
  try {
    return await operations.get(path, { ...options, codec: nullableBytes });
  } catch (error) {
    if (mayBeMissing && error instanceof NoNodeError) return null;
    throw error;
  }
}

async function findAfterLoss(
  operations: Operations,
  path: string,
  budget: Budget,
  about: About,
): Promise<Found | null> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await find(operations, path, { ...budget.next('unknown'), read: 'linearizable' }, true);
    } catch (error) {
      if (isLoss(error) && attempt < ATTEMPTS_MAX) continue;
      throw error instanceof ZooKeeperError ? asDoubtful(error, about) : error;
    }
  }
}

async function write(
  operations: Operations,
  path: string,
  data: Uint8Array | null,
  found: Found | null,
  shape: CreateShape | null,
  options: CallOptions,
): Promise<Stat> {
  if (found !== null) return await operations.set(path, data, { ...options, version: found.stat.version });
  const { mode, ttlMs, acl } = shape ?? {};
  return (await operations.create(path, data, { ...options, mode, ttlMs, acl })).stat;
}

/** Another client was faster: the next round sees its change. */
function isRace(error: unknown, found: Found | null): boolean {
  if (found === null) return error instanceof NodeExistsError;
  return error instanceof BadVersionError || error instanceof NoNodeError;
}

/**
 * What a linearizable read after a lost connection shows about a write upon `before`.
 *
 * - not-applied: certainly not. Includes a znode that was missing and still is: if it was created, another client has
 *   deleted it.
 * - as-wanted: the next version, with our data; ours, or written by a client that wrote the same.
 * - unknown: hidden by later versions, or by another znode of that name.
 */
function outcomeOf(
  found: Found | null,
  present: Found | null,
  data: Uint8Array | null,
): 'not-applied' | 'as-wanted' | 'unknown' {
  if (found === null) {
    if (present === null) return 'not-applied';
    if (present.stat.version !== 0) return 'unknown';
    return isSameData(data, present.data) ? 'as-wanted' : 'not-applied';
  }
  if (present === null || present.stat.czxid !== found.stat.czxid) return 'unknown';
  if (present.stat.version === found.stat.version) return 'not-applied';
  if (!isNextVersion(found.stat.version, present.stat.version)) return 'unknown';
  return isSameData(data, present.data) ? 'as-wanted' : 'not-applied';
}

/**
 * Milliseconds before the next round. The first rounds have no delay; then random delays keep many writers apart.
 *
 * @param random 32 random bits
 */
function pauseAfter(round: number, random: number): number {
  return round < 3 ? 0 : Math.min(2 ** round, PAUSE_MAX_MS) * (random / 2 ** 32);
}

const PAUSE_MAX_MS = 100;
