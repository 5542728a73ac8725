/** W7: at rest, every watch that a program waits for is armed, so that the next change of its znode fires it. */
import { hexZxid } from '@meerkat/protocol';
import type { HistoryEntry, Operation } from '../history.ts';
import { mayRead } from './access.ts';
import { type ClientLog, describe } from './client-log.ts';
import type { CommittedTree } from './committed-tree.ts';
import type { Violations } from './violation.ts';
import { isWatched, leavesWatch } from './watch-rules.ts';

type Stir = HistoryEntry & { readonly kind: 'stir' };

export class StirRules {
  readonly #log: ClientLog;
  readonly #tree: CommittedTree;
  readonly #violations: Violations;

  constructor(log: ClientLog, tree: CommittedTree, violations: Violations) {
    this.#log = log;
    this.#tree = tree;
    this.#violations = violations;
  }

  /** Between the two entries every znode that could be watched is changed in every way. */
  check(): void {
    let begins: Stir | null = null;
    for (const entry of this.#log.history.entries) {
      if (entry.kind !== 'stir') continue;
      if (entry.phase === 'begins') begins = entry;
      else if (begins !== null) this.#checkBetween(begins, entry);
    }
  }

  #checkBetween(begins: Stir, ends: Stir): void {
    for (const operation of this.#log.history.operations) {
      const { request, client, startOrder, endOrder } = operation;
      if (endOrder === null || endOrder > begins.order || this.#isOver(client, startOrder, ends.order)) continue;
      const notifications = this.#log.notifications.get(operation) ?? [];
      if (request.op === 'watch') {
        if (this.#isStable(client, begins.order, ends.order)) this.#checkPersistent(operation, begins, ends);
      } else if (leavesWatch(operation) && !notifications.some(({ order }) => order < ends.order)) {
        // A change that its client may not read has used it up.
        if (this.#wasHidden(operation, operation.zxid ?? 0, ends.zxid)) continue;
        const message = `${describe(operation)} waits for a change and was notified of none until ${hexZxid(ends.zxid)}`;
        this.#violations.reportAt(ends.atMs, 'W7', [], message);
      }
    }
  }

  #checkPersistent(operation: Operation, begins: Stir, ends: Stir): void {
    const { request, client, result, unwatchedOrder } = operation;
    if (request.op !== 'watch' || result === null || (unwatchedOrder ?? ends.order) < ends.order) return;
    const notifications = new Set(
      (this.#log.notifications.get(operation) ?? []).map(({ zxid, type, path }) => `${zxid} ${type} ${path}`),
    );
    for (const change of this.#tree.changes) {
      const { zxid, type, path } = change;
      if (zxid <= begins.zxid || zxid > ends.zxid || !isWatched(change, request.path, request.isRecursive)) continue;
      if (notifications.has(`${zxid} ${type} ${path}`)) continue;
      if (this.#isHidden(path, client, this.#tree.zxidBefore(zxid), zxid)) continue;
      const message = `${describe(operation)} was not notified of ${type} ${path} of ${hexZxid(zxid)}`;
      this.#violations.reportAt(ends.atMs, 'W7', [], message);
      return;
    }
  }

  #wasHidden({ request, client }: Operation, zxid: number, until: number): boolean {
    return 'path' in request && this.#isHidden(request.path, client, zxid, until);
  }

  /** Between the two zxids, the client was at some time not allowed to read the znode. */
  #isHidden(path: string, client: string, zxid: number, until: number): boolean {
    const identity = this.#log.identityOf(client);
    return this.#tree.aclsBetween(path, zxid, until).some((acl) => !mayRead(acl, identity));
  }

  /** The program that waited has ended. */
  #isOver(client: string, since: number, until: number): boolean {
    return this.#log.ends.some((end) => end.client === client && end.order > since && end.order < until);
  }

  /** No other connection: a persistent watch has a gap there. */
  #isStable(client: string, since: number, until: number): boolean {
    const connections = this.#log.byClient.get(client) ?? [];
    return !connections.some(({ connected: { order } }) => order > since && order < until);
  }
}
