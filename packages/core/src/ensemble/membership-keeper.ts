import { counterOf, formatZxid, type Membership, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import type { MembershipStore, Trace } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import type { LeaderMembership } from '../zab/leader-host.ts';
import { findMember, hasSameContent, Members, parseUsableMembership } from './members.ts';

export interface MembershipKeeperParts {
  readonly serverId: number;
  /** As configured on this server. */
  readonly membership: Membership;
  readonly isReconfigEnabled: boolean;
  /** null: after a restart the configured membership is used again. */
  readonly store: MembershipStore | null;
  readonly trace: Trace;
  readonly wallMs: () => number;
}

/**
 * What a server knows about the memberships of its ensemble, and how it persists them.
 *
 *     reconfig txn ─► proposed ─► COMMITANDACTIVATE ─► committed ─► files of the dynamic configuration
 *     NEWLEADER ────► proposed ─► UPTODATE ──────────►     ▲
 *     notification of a newer one, while looking ──────────┘
 *
 * The last proposed membership is recovered from the log, where it must be before this server acknowledges it: it is
 * the data of `/zookeeper/config` after recovery. The committed membership is in the files. If these are older than
 * what was committed, this server needs quorums of both until another server reports a newer one. But a change that
 * another server follows is committed, because a leader proposes the next change only after that.
 *
 * With `reconfigEnabled=false` none of this applies, and each server shows its own configuration in
 * `/zookeeper/config`.
 */
export class MembershipKeeper implements LeaderMembership {
  readonly members: Members;
  readonly isReconfigEnabled: boolean;
  /** Called after each change. */
  onChanged: () => void = () => {};
  readonly #parts: MembershipKeeperParts;
  /** Named by NEWLEADER. */
  #announced: Membership | null = null;
  /**
   * Memberships proposed before the current proposal, and committed since, that this server has not applied yet.
   * Ascending.
   */
  #awaited: readonly Membership[] = [];
  #isKept = true;
  #isKeeping = false;
  #isKeptStale = false;

  constructor(parts: MembershipKeeperParts) {
    this.#parts = parts;
    this.isReconfigEnabled = parts.isReconfigEnabled;
    this.members = new Members(parts.membership, parts.isReconfigEnabled);
  }

  get version(): Zxid {
    return this.members.membership.version;
  }

  get committedText(): string {
    return this.members.configText;
  }

  get newestText(): string {
    return this.members.newestText;
  }

  get keepsLeader(): boolean {
    return this.members.keepsLeader(this.#parts.serverId);
  }

  /** The log has been read: the last proposed membership is in the tree. */
  onRecovered({ tree }: Database): void {
    if (!this.isReconfigEnabled) return;
    this.#announced = null;
    this.#awaited = [];
    const z = tree.znodes.find(CONFIG_PATH);
    const found = parse(tree.dataOf(z));
    const isTxn = found !== null && found.version === tree.mzxidOf(z);
    const replaced = isTxn ? parse(tree.replacedMembership) : null;
    if (isTxn && replaced !== null && replaced.version < found.version) this.commit(replaced);
    this.#propose(isTxn ? found : null);
  }

  /** A txn that changes the membership has been proposed, by this server or by its leader. */
  onProposed(data: Uint8Array | null): void {
    if (!this.isReconfigEnabled) return;
    const membership = parseUsableMembership(DECODER.decode(data ?? new Uint8Array(0)));
    if ('fault' in membership) {
      this.#warnOf('a change of the membership', membership.fault);
      return;
    }
    const { proposed } = this.members;
    if (proposed !== null && proposed.version < membership.version) this.#awaited = [...this.#awaited, proposed];
    this.#propose(membership);
  }

  /** NEWLEADER, as in `LearnerEffects`. */
  onAnnounced(configText: string, pending: Zxid | null): void {
    if (!this.isReconfigEnabled) return;
    const membership = parseUsableMembership(configText);
    if ('fault' in membership) {
      this.#warnOf('NEWLEADER', membership.fault);
      return;
    }
    this.#announced = membership;
    if (pending === null || this.members.proposed?.version !== pending || membership.version >= pending) {
      this.#propose(membership);
    }
  }

  /**
   * UPTODATE: the membership named by NEWLEADER is in force.
   *
   * @param lastCommitted a later change is only proposed
   */
  onUpToDate(lastCommitted: Zxid): void {
    const announced = this.#announced;
    this.#announced = null;
    const isCommitted =
      announced !== null && (counterOf(announced.version) === 0 || announced.version <= lastCommitted);
    if (isCommitted) this.commit(announced);
  }

  /** The membership change with this zxid is committed and applied to the tree. */
  onCommitted(zxid: Zxid): void {
    const { proposed } = this.members;
    const committed = [...this.#awaited, proposed].find((membership) => membership?.version === zxid) ?? null;
    if (committed === null) return;
    this.#awaited = this.#awaited.filter(({ version }) => version > zxid);
    this.commit(committed);
  }

  /** The leader has a quorum: the newest membership is in force. */
  onEstablished(): void {
    if (this.members.proposed !== null) this.commit(this.members.proposed);
  }

  /** The first leader of an ensemble gives the membership a version. */
  onEpochChosen(epoch: number): void {
    const before = this.members.proposed;
    this.members.establish(epoch);
    if (this.members.proposed !== before) this.#onChanged();
  }

  commit(membership: Membership): void {
    if (!this.isReconfigEnabled) return;
    const before = this.members.membership;
    if (!this.members.commit(membership)) return;
    const { trace, serverId } = this.#parts;
    const isMember = findMember(membership, serverId) !== null;
    const wasMember = before.version > ZXID_ZERO && findMember(before, serverId) !== null;
    // A server that is about to join keeps the list by which it finds the others and that includes itself.
    this.#isKept = isMember || wasMember;
    this.#keep();
    const version = formatZxid(membership.version);
    if (!hasSameContent(before, membership)) {
      const ids = membership.members.map((member) => `${member.serverId} (${member.role})`).join(', ');
      trace.emit({ kind: 'notice', message: `membership ${version} is in force: servers ${ids}` });
    }
    if (!isMember) {
      trace.emit({
        kind: 'warning',
        message: `this server, ${serverId}, is ${wasMember ? 'no longer' : 'not yet'} a member of the ensemble, by membership ${version}: it follows without a vote. ${wasMember ? 'Stop it, or add it again' : 'Add it'} with "reconfig -add"`,
      });
    }
    this.#onChanged();
  }

  /** Shows the committed membership in `/zookeeper/config`, without a txn unless one has changed it. */
  show({ tree }: Database): void {
    const { version } = this;
    const data = ENCODER.encode(this.committedText);
    const z = tree.znodes.find(CONFIG_PATH);
    const isShown = tree.mzxidOf(z) === version && isSameBytes(tree.dataOf(z), data);
    if (!isShown) tree.showMembership(data, version, this.#parts.wallMs());
  }

  #propose(membership: Membership | null): void {
    const before = this.members.proposed;
    this.members.propose(membership);
    if (this.members.proposed?.version === before?.version) return;
    this.#keep();
    this.#onChanged();
  }

  #onChanged(): void {
    const { membership, proposed } = this.members;
    this.#parts.trace.emit({ kind: 'membership-changed', committed: membership, proposed });
    this.onChanged();
  }

  /** One write at a time; the newest membership is written last. */
  #keep(): void {
    const { store, trace } = this.#parts;
    if (store === null || !this.#isKept) return;
    if (this.#isKeeping) {
      this.#isKeptStale = true;
      return;
    }
    const { membership, proposed } = this.members;
    if (membership.version === ZXID_ZERO && proposed === null) return;
    this.#isKeeping = true;
    store.keep(membership, proposed, (error) => {
      this.#isKeeping = false;
      if (error !== null) {
        const message = `cannot keep the membership of version ${formatZxid(membership.version)}: ${error.message}. After a restart this server uses an older one until another server reports the current one`;
        trace.emit({ kind: 'warning', message });
      }
      if (!this.#isKeptStale) return;
      this.#isKeptStale = false;
      this.#keep();
    });
  }

  #warnOf(what: string, fault: string): void {
    this.#parts.trace.emit({ kind: 'warning', message: `${what} names a membership that cannot be used: ${fault}` });
  }
}

const CONFIG_PATH = '/zookeeper/config';
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });

/** null when it holds no usable membership. */
function parse(data: Uint8Array | null): Membership | null {
  const membership = data === null ? null : parseUsableMembership(DECODER.decode(data));
  return membership === null || 'fault' in membership ? null : membership;
}

function isSameBytes(a: Uint8Array | null, b: Uint8Array): boolean {
  return a !== null && a.length === b.length && a.every((byte, i) => byte === b[i]);
}
