/**
 * Watches: W1, W3 and W4, and that persistent ones miss nothing between two gaps. The order on a connection is in
 * `order-rules.ts`; whether everything is armed at rest, in `stir-rules.ts`.
 */
import { hexZxid, parentOf } from '@meerkat/protocol';
import type { Operation } from '../history.ts';
import { type Identity, mayRead } from './access.ts';
import {
  type ClientLog,
  type ConnectionLog,
  describe,
  type Event,
  type Notification,
  type Rearmed,
  type Reply,
} from './client-log.ts';
import { type Change, type ChangeType, type CommittedTree, countUpTo } from './committed-tree.ts';
import type { Violations } from './violation.ts';
import type { ZnodeState } from './znode-state.ts';

/** What a standard watch waits for. */
type WatchKind = 'data' | 'exist' | 'child';

/** A standard watch that a server has been asked to keep for a connection. */
interface Armed {
  readonly path: string;
  readonly kind: WatchKind;
  /** The first change behind this one fires it. */
  readonly zxid: number;
  /** That change; null when there is none, and where the state decides. */
  readonly due: Change | null;
  /** Set again by setWatches: the state decides at once, not the next change. */
  readonly isRearmed: boolean;
  /** Requests that were sent before it: the server answers them before it knows of the watch. */
  readonly requestsBefore: number;
}

const FIRES: Readonly<Record<WatchKind, readonly ChangeType[]>> = {
  data: ['changed', 'deleted', 'created'],
  exist: ['changed', 'deleted', 'created'],
  child: ['children', 'deleted'],
};

export class WatchRules {
  readonly #log: ClientLog;
  readonly #tree: CommittedTree;
  readonly #violations: Violations;
  readonly #graceMs: number;
  readonly #news: Map<string, readonly Change[]> = new Map();

  /** @param graceMs how long a change may take from the connection to the program */
  constructor(log: ClientLog, tree: CommittedTree, violations: Violations, graceMs: number) {
    this.#log = log;
    this.#tree = tree;
    this.#violations = violations;
    this.#graceMs = graceMs;
  }

  check(): void {
    for (const connections of this.#log.byClient.values()) for (const one of connections) this.#checkConnection(one);
    for (const operation of this.#log.history.operations) {
      const { request, result } = operation;
      const notifications = this.#log.notifications.get(operation) ?? [];
      if (request.op === 'watch') {
        if (result !== null) this.#checkPersistent(operation, request.path, request.isRecursive, notifications);
      } else if ('hasWatch' in request && request.hasWatch) {
        this.#checkOneShot(operation, notifications);
      }
    }
  }

  /** Events on one connection: each is about something that happened, and comes before a reply that shows it. */
  #checkConnection({ connected, passed }: ConnectionLog): void {
    const who = `client ${connected.client} at ${connected.server}`;
    const identity = this.#log.identityOf(connected.client);
    let armed: Armed[] = [];
    let sent = 0;
    let replied = 0;
    for (const entry of passed) {
      if (entry.kind === 'sent') {
        sent++;
      } else if (entry.kind === 'event') {
        this.#checkEvent(who, entry, identity);
        armed = armed.filter((watch) => watch.requestsBefore > replied || !isFiredBy(watch, entry));
      } else if (entry.kind === 'rearmed') {
        armed.push(...armedAnew(entry, sent));
      } else {
        replied++;
        if (entry.zxid <= 0 || this.#isProvisional(connected.isReadOnly, entry.zxid)) continue;
        armed = armed.filter((watch) => {
          if (watch.requestsBefore >= replied) return true;
          const missed = this.#missed(watch, entry.zxid);
          if (missed === null) return true;
          // A change that the client may not read uses up its watch, or is reported without a zxid.
          if (this.#wasHidden(watch.path, identity, watch.zxid, entry.zxid)) return false;
          const invariant = watch.isRearmed ? 'W3' : 'W1';
          const message = `${who}: no event for the ${watch.kind} watch on ${watch.path}, ${missed}, before a reply of ${hexZxid(entry.zxid)}`;
          this.#violations.reportAt(entry.atMs, invariant, [], message);
          return false;
        });
        const watch = this.#armedBy(entry);
        if (watch !== null) armed.push(watch);
      }
    }
  }

  /** @returns null when no watch was asked for, or the answer leaves none */
  #armedBy({ operation, errorCode, zxid }: Reply): Armed | null {
    if (operation === null || operation.isWatchCovered) return null;
    const { request } = operation;
    if (!('hasWatch' in request && request.hasWatch)) return null;
    const kind = kindOfWatch(request.op, errorCode);
    if (kind === null) return null;
    const { path } = request;
    return { path, kind, zxid, due: this.#firstChange({ path, kind }, zxid), isRearmed: false, requestsBefore: 0 };
  }

  #checkEvent(who: string, event: Event, identity: Identity): void {
    const { zxid, type, path } = event;
    // A server that replays missed events does not say when they happened.
    if (zxid === null || zxid <= 0) return;
    if (this.#happened(zxid, type, path)) {
      const acls = this.#tree.aclsBetween(path, this.#tree.zxidBefore(zxid), zxid);
      if (acls.some((acl) => mayRead(acl, identity))) return;
      const message = `${who}: is notified of ${type} ${path} of ${hexZxid(zxid)}, which it may not read`;
      this.#violations.reportAt(event.atMs, 'C7', [], message);
      return;
    }
    this.#violations.reportAt(
      event.atMs,
      'W4',
      [],
      `${who}: the event ${type} ${path} of ${hexZxid(zxid)} is no change`,
    );
  }

  /** Between the two zxids, this identity was at some time not allowed to read the znode. */
  #wasHidden(path: string, identity: Identity, zxid: number, until: number): boolean {
    return this.#tree.aclsBetween(path, zxid, until).some((acl) => !mayRead(acl, identity));
  }

  /** @returns what should have fired the watch at the latest when a reply of `zxid` was sent, or null */
  #missed(watch: Armed, zxid: number): string | null {
    if (!watch.isRearmed) {
      const { due } = watch;
      return due === null || due.zxid > zxid ? null : `${due.type} by ${hexZxid(due.zxid)}`;
    }
    const state = this.#tree.stateAt(watch.path, zxid);
    if (watch.kind === 'exist') return state === null ? null : 'which is there';
    if (state === null) return 'which is gone';
    const changed = watch.kind === 'data' ? state.mzxid : state.pzxid;
    return changed > watch.zxid ? `changed by ${hexZxid(changed)}, after ${hexZxid(watch.zxid)}` : null;
  }

  #firstChange(watch: Pick<Armed, 'path' | 'kind'>, zxid: number): Change | null {
    const changes = this.#tree.changesOf(watch.path);
    for (let i = countUpTo(changes, zxid); i < changes.length; i++) {
      if (FIRES[watch.kind].includes(changes[i]!.type)) return changes[i]!;
    }
    return null;
  }

  /** A server without a leader shows its log, which may end with uncommitted txns. */
  #isProvisional(isReadOnly: boolean, zxid: number): boolean {
    return isReadOnly && !this.#tree.has(zxid);
  }

  #happened(zxid: number, type: ChangeType, path: string): boolean {
    const changes = this.#tree.changesOf(path);
    for (let i = countUpTo(changes, zxid) - 1; i >= 0 && changes[i]!.zxid === zxid; i--) {
      if (changes[i]!.type === type) return true;
    }
    return false;
  }

  /**
   * W3, as the program sees it, independent of the client's requests: on another connection, the program is notified
   * of a change before anything shows it.
   */
  #checkReconnected(operation: Operation, first: Notification | undefined): void {
    const { request, result, zxid, client } = operation;
    if (!('path' in request) || !leavesWatch(operation) || zxid === null || result === null) return;
    const isThere = 'stat' in result && result.stat !== null;
    const kind: WatchKind = request.op === 'children' ? 'child' : isThere ? 'data' : 'exist';
    const watch: Armed = { path: request.path, kind, zxid, due: null, isRearmed: true, requestsBefore: 0 };
    const { entries } = this.#log.history;
    const endMs = entries[entries.length - 1]?.atMs ?? 0;
    const end = this.#log.ends.find((one) => one.client === client && one.order > operation.startOrder);
    const until = end?.order ?? Number.POSITIVE_INFINITY;
    for (const { connected, passed } of this.#log.byClient.get(client) ?? []) {
      if (connected.order < (operation.replyOrder ?? 0) || connected.order > until) continue;
      if (first !== undefined && first.order < connected.order) return;
      for (const entry of passed) {
        if (entry.kind !== 'reply' || entry.zxid <= 0 || entry.order > until) continue;
        if (this.#isProvisional(connected.isReadOnly, entry.zxid)) continue;
        if (entry.atMs + this.#graceMs >= (first?.atMs ?? endMs)) return;
        const missed = this.#missed(watch, entry.zxid);
        if (missed === null) continue;
        if (this.#wasHidden(request.path, this.#log.identityOf(client), zxid, entry.zxid)) return;
        const message = `was not notified of ${request.path}, ${missed}, before a reply of ${hexZxid(entry.zxid)}`;
        this.#violations.reportAt(entry.atMs, 'W3', [], `${describe(operation)} ${message}`);
        return;
      }
    }
  }

  /** The notifications of a read's one-shot watch, as the program got them. */
  #checkOneShot(operation: Operation, notifications: readonly Notification[]): void {
    const { request, zxid, error } = operation;
    if (!('hasWatch' in request)) return;
    this.#checkReconnected(operation, notifications[0]);
    if (notifications.length > 1) {
      this.#report(
        notifications[1]!,
        'W1',
        `${describe(operation)} was notified of ${notifications.length} changes by a watch for one`,
      );
    }
    const [first] = notifications;
    if (first === undefined || first.type === 'gap' || zxid === null) return;
    if (first.zxid === null || first.zxid <= 0) {
      this.#checkReplayed(operation, zxid, first);
      return;
    }
    if (!this.#happened(first.zxid, first.type, first.path)) {
      this.#report(
        first,
        'W4',
        `${describe(operation)} was notified of ${first.type} ${first.path} of ${hexZxid(first.zxid)}, which is no change`,
      );
      return;
    }
    const kind = kindOfWatch(request.op, error === null ? 0 : 1);
    const isSameConnection = !this.#isRearmedBetween(operation, first);
    const due = kind === null ? null : this.#firstChange({ path: request.path, kind }, zxid);
    if (!isSameConnection || due === null || due.zxid === first.zxid) return;
    if (this.#wasHidden(request.path, this.#log.identityOf(operation.client), zxid, first.zxid)) return;
    const message = `${describe(operation)} was notified of ${hexZxid(first.zxid)}, and ${due.type} by ${hexZxid(due.zxid)} came first`;
    this.#report(first, 'W1', message);
  }

  /**
   * W4 for an event without a zxid, from a server that replays what a client has missed: something has happened there
   * since the read, or since the zxid that the client reported as seen.
   */
  #checkReplayed(operation: Operation, zxid: number, notifications: Notification): void {
    const { request, client } = operation;
    if (!('path' in request)) return;
    const connection = (this.#log.byClient.get(client) ?? []).findLast(
      ({ connected }) => connected.order < notifications.order,
    );
    const passed = connection?.passed ?? [];
    const seen = passed.flatMap((entry) =>
      entry.kind === 'rearmed' && entry.order < notifications.order ? entry.relativeZxid : [],
    );
    const since = Math.min(zxid, ...seen);
    const kind = request.op === 'children' ? 'child' : 'data';
    const shown = passed.find((entry) => entry.kind === 'reply' && entry.order > notifications.order && entry.zxid > 0);
    const until = shown?.kind === 'reply' ? shown.zxid : this.#tree.lastZxid;
    if (kind === 'child' && isDerived(passed, notifications)) return;
    // It has seen, or been notified by, a server whose end of the log was never committed.
    if (this.#isProvisional(this.#log.isReadOnly(operation), zxid)) return;
    if (this.#isProvisional(connection?.connected.isReadOnly ?? false, until)) return;
    const change = this.#firstChange({ path: request.path, kind }, since);
    if (change !== null && change.zxid <= until) return;
    // A server compares pzxid, which a new znode has as well: a client that says 0, after all servers had forgotten its session, is notified of it.
    const isNew = (state: ZnodeState): boolean => state.exists && state.pzxid > since;
    if (kind === 'child' && this.#tree.statesBetween(request.path, since, until).some(isNew)) return;
    // A change hidden from an older watch of this client on the path left that one armed; it is notified for all of them.
    if (this.#wasHidden(request.path, this.#log.identityOf(client), 0, until)) return;
    const message = `was notified of ${notifications.type} ${notifications.path}, where nothing has changed between ${hexZxid(since)} and ${hexZxid(until)}`;
    this.#report(notifications, 'W4', `${describe(operation)} ${message}`);
  }

  #isRearmedBetween(operation: Operation, notifications: Notification): boolean {
    const connections = this.#log.byClient.get(operation.client) ?? [];
    const since = operation.replyOrder ?? operation.startOrder;
    return connections.some(({ connected }) => connected.order > since && connected.order < notifications.order);
  }

  /** Every change from the watch on, in order, and a gap where some may be missing. */
  #checkPersistent(
    operation: Operation,
    path: string,
    isRecursive: boolean,
    notifications: readonly Notification[],
  ): void {
    const due = this.#newsOf(path, isRecursive);
    const identity = this.#log.identityOf(operation.client);
    const isHidden = (change: Change): boolean =>
      this.#wasHidden(change.path, identity, this.#tree.zxidBefore(change.zxid), change.zxid);
    // null: anything may come next, because something may be missing.
    let next: number | null = operation.zxid === null ? null : countUpTo(due, operation.zxid);
    let reached = next ?? 0;
    for (const change of notifications) {
      if (change.type === 'gap' || change.zxid === null || change.zxid <= 0) {
        next = null;
        // A client does not report events as seen to the next server: a server that is behind may send them again.
        reached = 0;
        continue;
      }
      let at = reached;
      while (at < due.length && !isSame(due[at]!, change)) at++;
      const what = `${change.type} ${change.path} of ${hexZxid(change.zxid)}`;
      if (at === due.length) {
        const isPast = due.some((one) => isSame(one, change));
        const message = isPast
          ? `was notified again, or late, of ${what}`
          : `was notified of ${what}, which is no such change`;
        this.#report(change, isPast ? 'W2' : 'W4', `${describe(operation)} ${message}`);
        next = null;
        continue;
      }
      const missed = next === null ? undefined : due.slice(next, at).find((one) => !isHidden(one));
      if (missed !== undefined) {
        const message = `was notified of ${what} and not of ${missed.type} ${missed.path} of ${hexZxid(missed.zxid)}, without a gap`;
        this.#report(change, 'W1', `${describe(operation)} ${message}`);
      }
      reached = at + 1;
      next = reached;
    }
    const left = next === null ? undefined : due.slice(next).find((one) => !isHidden(one));
    if (left !== undefined) this.#checkRest(operation, left, notifications);
  }

  /** All changes that a persistent watch reports, if it was armed from the beginning. */
  #newsOf(path: string, isRecursive: boolean): readonly Change[] {
    const key = `${isRecursive ? 'below' : 'at'} ${path}`;
    let news = this.#news.get(key);
    if (news === undefined) {
      const changes = isRecursive ? this.#tree.changes : this.#tree.changesOf(path);
      const watched = changes.filter((change) => isWatched(change, path, isRecursive));
      news = watched.filter((change, i) => !isSameNews(change, watched, i));
      this.#news.set(key, news);
    }
    return news;
  }

  /** The next change without a notification: no later reply to this client may have shown it. */
  #checkRest(operation: Operation, change: Change, notifications: readonly Notification[]): void {
    const { history } = this.#log;
    const endMs = history.entries[history.entries.length - 1]?.atMs ?? 0;
    const since = notifications[notifications.length - 1]?.order ?? operation.endOrder ?? 0;
    const until = operation.unwatchedOrder ?? Number.POSITIVE_INFINITY;
    for (const { connected, passed } of this.#log.byClient.get(operation.client) ?? []) {
      // Another connection has its own gap, which the program may not have received yet.
      if (connected.connection !== operation.connection) continue;
      const shown = passed.find(
        (entry) =>
          entry.kind === 'reply' &&
          entry.order > since &&
          entry.order < until &&
          entry.order < (operation.unwatchedOrder ?? Number.POSITIVE_INFINITY) &&
          entry.zxid >= change.zxid &&
          entry.atMs < endMs - this.#graceMs,
      );
      if (shown === undefined) continue;
      const message = `was never notified of ${change.type} ${change.path} of ${hexZxid(change.zxid)}, without a gap`;
      this.#violations.reportAt(shown.atMs, 'W1', [], `${describe(operation)} ${message}`);
      return;
    }
  }

  #report(notifications: Notification, invariant: string, message: string): void {
    this.#violations.reportAt(notifications.atMs, invariant, [], message);
  }
}

/** A read that has left a one-shot watch, as its program knows. */
export function leavesWatch({ request, result, error }: Operation): boolean {
  return 'hasWatch' in request && request.hasWatch && result !== null && error === null;
}

/** null: the read has left no watch. */
function kindOfWatch(op: string, errorCode: number): WatchKind | null {
  if (op === 'exists') return 'exist';
  if (errorCode !== 0) return null;
  return op === 'children' ? 'child' : 'data';
}

/**
 * A client takes the creation of a child for a new list where it has a recursive watch, which has no 'children' events of its own.
 * It cannot tell what a server replays of another watch, which waited for that child to exist, from what has happened just now.
 */
function isDerived(passed: ConnectionLog['passed'], { path, order }: Notification): boolean {
  const isRecursive = passed.some((one) => one.kind === 'rearmed' && one.order < order && one.recursive.includes(path));
  const isOfChild = (one: ConnectionLog['passed'][number]): boolean =>
    one.kind === 'event' && one.order < order && one.zxid === null && parentOf(one.path) === path;
  return isRecursive && passed.some(isOfChild);
}

function isFiredBy(watch: Armed, event: Event): boolean {
  return watch.path === event.path && FIRES[watch.kind].includes(event.type);
}

function armedAnew({ relativeZxid, data, exist, child }: Rearmed, requestsBefore: number): Armed[] {
  const armed = (kind: WatchKind, paths: readonly string[]): Armed[] =>
    paths.map((path) => ({ path, kind, zxid: relativeZxid, due: null, isRearmed: true, requestsBefore }));
  return [...armed('data', data), ...armed('exist', exist), ...armed('child', child)];
}

function isSame(change: Change, notifications: Change | Notification): boolean {
  return change.zxid === notifications.zxid && change.type === notifications.type && change.path === notifications.path;
}

/** A multi may change a list of children twice: there is one new list, which is reported once. */
function isSameNews(change: Change, watched: readonly Change[], at: number): boolean {
  if (change.type !== 'children') return false;
  for (let i = at - 1; i >= 0 && watched[i]!.zxid === change.zxid; i--) if (isSame(watched[i]!, change)) return true;
  return false;
}

/** A persistent watch reports its znode and changes of its children's names; a recursive one all znodes below, no names. */
export function isWatched(change: Change, path: string, isRecursive: boolean): boolean {
  if (!isRecursive) return change.path === path;
  if (change.type === 'children') return false;
  return change.path === path || change.path.startsWith(path === '/' ? path : `${path}/`);
}
