/** After healing, when nothing is in flight: L2, W6, S6 and Z17 for the digests that servers remember. */
import { type Acl, hexZxid, type PersistedStat } from '@meerkat/protocol';
import { isSameAcl } from './access.ts';
import type { CommittedTree } from './committed-tree.ts';
import type { Violations } from './violation.ts';
import type { ZnodeState } from './znode-state.ts';

/** What one server holds at the end. */
export interface FinalState {
  readonly server: number;
  /** Of the last txn applied. */
  readonly lastZxid: number;
  readonly treeDigest: bigint;
  /** Digests of the tree after earlier txns, as it remembers them. Absent: not checked. */
  readonly digests?: readonly { readonly zxid: number; readonly digest: bigint }[];
  /** Its whole tree; null: not checked. In stats, `ephemeralOwner` may mark containers and TTL znodes. */
  readonly znodes: Iterable<FinalZnode> | null;
  /** Sessions and their timeouts in milliseconds; null: not checked. */
  readonly sessions: ReadonlyMap<bigint, number> | null;
}

export interface FinalZnode {
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly stat: PersistedStat;
  /** Absent: not checked. */
  readonly acl?: readonly Acl[];
}

export function checkFinalStates(states: readonly FinalState[], tree: CommittedTree, violations: Violations): void {
  const [first] = states;
  if (first === undefined) return;
  checkDigests(states, violations);
  for (const state of states) {
    const { server, lastZxid } = state;
    if (lastZxid !== tree.lastZxid) {
      const message = `server ${server} ends at ${hexZxid(lastZxid)}, and the committed txns at ${hexZxid(tree.lastZxid)}`;
      violations.report('L2', [server], message);
    } else if (state.treeDigest !== first.treeDigest && first.lastZxid === lastZxid) {
      const digests = `0x${state.treeDigest.toString(16)} and 0x${first.treeDigest.toString(16)}`;
      violations.report(
        'L2',
        [server, first.server],
        `servers ${server} and ${first.server} end with other trees: ${digests}`,
      );
    }
    // Its znodes are compared with the state at its own zxid, so that lag is reported once.
    if (state.znodes !== null) checkZnodes(server, lastZxid, state.znodes, tree, violations);
    if (state.sessions !== null) checkSessions(server, lastZxid, state.sessions, tree, violations);
  }
}

/** A server may have recorded a digest in a tree that was ahead of its zxid, or of a txn that it had to truncate. */
function checkDigests(states: readonly FinalState[], violations: Violations): void {
  const known: Map<number, { readonly server: number; readonly digest: bigint }> = new Map();
  for (const { server, digests = [] } of states) {
    for (const { zxid, digest } of digests) {
      const other = known.get(zxid);
      if (other === undefined) known.set(zxid, { server, digest });
      else if (other.digest !== digest) {
        const message = `servers ${other.server} and ${server} remember other digests of ${hexZxid(zxid)}`;
        violations.report('Z17', [other.server, server], message);
      }
    }
  }
}

function checkZnodes(
  server: number,
  zxid: number,
  znodes: Iterable<FinalZnode>,
  tree: CommittedTree,
  violations: Violations,
): void {
  const found: Set<string> = new Set();
  for (const znode of znodes) {
    const { path } = znode;
    found.add(path);
    if (isSystemPath(path)) continue;
    const due = tree.stateAt(path, zxid);
    const difference = due === null ? 'it should not be there' : differenceOfZnodes(znode, due);
    if (difference !== null) violations.report('W6', [server], `${path} at server ${server} is wrong: ${difference}`);
  }
  for (const path of tree.paths()) {
    if (found.has(path) || isSystemPath(path) || tree.stateAt(path, zxid) === null) continue;
    violations.report('W6', [server], `${path} is missing at server ${server}`);
  }
}

/** The service keeps these for itself. */
function isSystemPath(path: string): boolean {
  return path === '/zookeeper' || path.startsWith('/zookeeper/');
}

function differenceOfZnodes({ data, stat, acl }: FinalZnode, due: ZnodeState): string | null {
  if (acl !== undefined && !isSameAcl(acl, due.acl)) return 'its ACL differs';
  for (const name of ['czxid', 'mzxid', 'pzxid', 'ctime', 'mtime', 'version', 'cversion', 'aversion'] as const) {
    if (stat[name] !== due[name]) return `${name} is ${stat[name]} instead of ${due[name]}`;
  }
  if (due.owner !== 0n && stat.ephemeralOwner !== due.owner) {
    return `its owner is 0x${stat.ephemeralOwner.toString(16)} instead of 0x${due.owner.toString(16)}`;
  }
  const length = data?.length ?? 0;
  const isSame = length === (due.data?.length ?? 0) && (data?.every((byte, i) => byte === due.data![i]) ?? true);
  return isSame ? null : 'its data differ';
}

function checkSessions(
  server: number,
  zxid: number,
  sessions: ReadonlyMap<bigint, number>,
  tree: CommittedTree,
  violations: Violations,
): void {
  for (const [id, life] of tree.sessions) {
    const isAlive = life.createdZxid <= zxid && (life.closedZxid === null || life.closedZxid > zxid);
    if (isAlive === sessions.has(id)) continue;
    const is = isAlive ? 'does not know' : 'still knows';
    const why = isAlive ? 'which is alive' : `which ${hexZxid(life.closedZxid ?? 0)} has ended`;
    violations.report('S6', [server], `server ${server} ${is} session 0x${id.toString(16)}, ${why}`);
  }
  for (const id of sessions.keys()) {
    if (!tree.sessions.has(id)) {
      violations.report('S6', [server], `server ${server} knows session 0x${id.toString(16)}, which was never created`);
    }
  }
}
