import { type Acl, OpCode, parentOf } from '@meerkat/protocol';
import type { Data } from '../data.ts';
import { NoAuthError, NodeExistsError, NoNodeError } from '../errors.ts';
import type { Created } from '../machine/replies.ts';
import type { CallOptions, Requester } from '../requester.ts';
import { Budget, type Surroundings } from '../surroundings.ts';
import { absoluteOfCreate, type CreateRequester, type CreateShape, makeCreate } from '../write-requests.ts';
import { ATTEMPTS_MAX, isLoss } from './losses.ts';

/*
 * Missing znodes are created in two round trips at any depth: all ancestors are checked concurrently, then all missing
 * ones are created, from the top; the server keeps the order. With absolute paths, so that the znodes of the chroot are
 * created too.
 */

export interface EnsurePathOptions extends CallOptions {
  /** Of the znodes that are created. Default: all permissions for anyone. */
  readonly acl?: readonly Acl[] | undefined;
  /** 'container': the service deletes them some time after their last child. Default 'persistent'. */
  readonly mode?: 'persistent' | 'container' | undefined;
}

/**
 * Creates a znode and its ancestors where they are missing, including the chroot. Existing ones are left unchanged.
 *
 * @example
 * await client.ensurePath('/services/search/instances');
 */
export async function ensurePath(
  requester: Requester,
  surroundings: Surroundings,
  path: string,
  options: EnsurePathOptions = {},
): Promise<void> {
  const operation = 'ensurePath';
  const budget = new Budget(options, surroundings, { operation, path });
  await ensureAbsolute(requester, requester.absolute(path, operation), options, budget, operation);
}

export interface CreateParentsOptions extends CreateShape, CallOptions {
  /** The mode of missing parents. Default 'persistent'. */
  readonly parentMode?: 'persistent' | 'container' | undefined;
  /** The ACL of created parents. Default: that of the znode itself. */
  readonly parentAcl?: readonly Acl[] | undefined;
}

/**
 * Creates a znode, and its parents where they are missing.
 *
 * @example
 * await client.createParents('/services/search/instances/a', 'host1:8080', { mode: 'ephemeral' });
 */
export async function createParents(
  requester: CreateRequester,
  surroundings: Surroundings,
  path: string,
  data?: Data,
  options: CreateParentsOptions = {},
): Promise<Created> {
  const about = { operation: 'createParents', path };
  const budget = new Budget(options, surroundings, about);
  const absolute = absoluteOfCreate(requester, path, options, about.operation);
  const request = makeCreate(absolute, data, options, about);
  const parents = { mode: options.parentMode, acl: options.parentAcl ?? options.acl };
  for (let attempt = 1; ; attempt++) {
    try {
      const created = await requester.request<Created>(request, budget.next(), about);
      return { path: requester.relative(created.path), stat: created.stat };
    } catch (error) {
      // Retry, if an empty container among the parents was deleted before the child was created.
      if (!(error instanceof NoNodeError) || attempt >= ATTEMPTS_MAX) throw error;
      await ensureAbsolute(requester, parentOf(absolute), parents, budget, about.operation);
    }
  }
}

async function ensureAbsolute(
  requester: Requester,
  path: string,
  shape: CreateShape,
  budget: Budget,
  operation: string,
): Promise<void> {
  const lineage = lineageOf(path);
  for (let attempt = 1; ; attempt++) {
    // The earlier failure may have been caused by a lagging server.
    if (attempt > 1)
      await requester.request({ op: OpCode.sync, path }, budget.next('unknown'), { operation, path: null });
    const missing = await findMissing(requester, lineage, budget, operation);
    const results = await Promise.allSettled(
      missing.map((absolute) => {
        const about = { operation, path: requester.relative(absolute) };
        return requester.request(makeCreate(absolute, undefined, shape, about), budget.next(), about);
      }),
    );
    const failure = results.find((result) => isFailure(result));
    if (failure === undefined) return;
    // A retried create is harmless here, and a parent that was deleted again is recreated.
    const { reason } = failure as PromiseRejectedResult;
    if (attempt >= ATTEMPTS_MAX || !(isLoss(reason) || reason instanceof NoNodeError)) throw reason;
  }
}

async function findMissing(
  requester: Requester,
  lineage: readonly string[],
  budget: Budget,
  operation: string,
): Promise<readonly string[]> {
  const options = budget.next();
  const exists = await Promise.all(
    lineage.map(async (path) => {
      try {
        const about = { operation, path: requester.relative(path) };
        await requester.request({ op: OpCode.exists, path, watch: false }, options, about);
        return true;
      } catch (error) {
        if (error instanceof NoNodeError) return false;
        // NOAUTH is returned only for a znode that exists.
        if (error instanceof NoAuthError) return true;
        throw error;
      }
    }),
  );
  return lineage.filter((_, i) => exists[i] === false);
}

function isFailure(result: PromiseSettledResult<unknown>): boolean {
  return result.status === 'rejected' && !(result.reason instanceof NodeExistsError);
}

/** `/a`, `/a/b` for `/a/b`; empty for the root, because it always exists. */
function lineageOf(path: string): readonly string[] {
  const lineage: string[] = [];
  for (let at = path; at !== '/' && at !== ''; at = parentOf(at)) lineage.push(at);
  return lineage.reverse();
}
