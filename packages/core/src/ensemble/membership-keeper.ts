import { counterOf, formatZxid, type Membership, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import type { MembershipStore, Trace } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import type { LeaderMembership } from '../zab/leader-host.ts';
import { findMember, hasSameContent, Members, parseUsableMembership } from './members.ts';

export interface MembershipKeeperParts {
  readonly serverId: number;
  /** As the configuration of this server says. */
  readonly membership: Membership;
  readonly isReconfigEnabled: boolean;
  /** null: after a restart it is again what the configuration says. */
  readonly store: MembershipStore | null;
  readonly trace: Trace;
  readonly wallMs: () => number;
}

/**
 * What a server knows of the memberships of its ensemble, and where it keeps it.
 *
 *     reconfig txn ─► proposed ─► COMMITANDACTIVATE ─► committed ─► files of the dynamic configuration
 *     NEWLEADER ────► proposed ─► UPTODATE ──────────►     ▲
 *     notification of a newer one, while looking ──────────┘
 *
 * What was proposed last is found again in the log, where it must be before this server may acknowledge it: the data of
 * `/zookeeper/config` after the recovery. What is committed is in the files; where they are older than what was committed,
 * this server needs the say of both until another one tells it more. But a change that another one follows is committed: a
 * leader proposes none before that.
 *
 * Where memberships do not change (`reconfigEnabled=false`) nothing of it happens, and each server shows in
 * `/zookeeper/config` what its own configuration says.
 */
export class MembershipKeeper implements LeaderMembership {
  readonly members: Members;
  readonly isReconfigEnabled: boolean;
  /** Called after each change. */
  onChanged: () => void = () => {};
  readonly #parts: MembershipKeeperParts;
  /** What NEWLEADER has named. */
  #announced: Membership | null = null;
  /** Proposed and committed, in front of what is proposed, but this server has not applied them yet. Ascending. */
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

  /** The log is read: what was proposed last is in the tree. */
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

  /** A txn that changes the membership is proposed, here or by the leader. */
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

  /** UPTODATE: what NEWLEADER named is in force. @param lastCommitted a change behind that is only proposed */
  onUpToDate(lastCommitted: Zxid): void {
    const announced = this.#announced;
    this.#announced = null;
    const isCommitted =
      announced !== null && (counterOf(announced.version) === 0 || announced.version <= lastCommitted);
    if (isCommitted) this.commit(announced);
  }

  /** The change of the membership with this zxid is committed, and the tree has it. */
  onCommitted(zxid: Zxid): void {
    const { proposed } = this.members;
    const committed = [...this.#awaited, proposed].find((membership) => membership?.version === zxid) ?? null;
    if (committed === null) return;
    this.#awaited = this.#awaited.filter(({ version }) => version > zxid);
    this.commit(committed);
  }

  /** A leader has its quorum: the newest membership is in force. */
  onEstablished(): void {
    if (this.members.proposed !== null) this.commit(this.members.proposed);
  }

  /** The first leader gives the membership a version. */
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
    // A server that is about to join keeps the list with which it finds the others, and itself in it.
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
        message: `this server, ${serverId}, is not a member of the ensemble ${wasMember ? 'any more' : 'yet'}, by membership ${version}: it follows without a vote. ${wasMember ? 'Stop it, or add it again' : 'Add it'} with "reconfig -add"`,
      });
    }
    this.#onChanged();
  }

  /** What clients read in `/zookeeper/config`: told by no txn, unless it is one that has changed it. */
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

  /** One at a time, and at last the newest. */
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
        const message = `cannot keep the membership of version ${formatZxid(membership.version)}: ${error.message}. After a restart this server knows an older one until it hears of another server`;
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

/** null where there is nothing that a server can follow. */
function parse(data: Uint8Array | null): Membership | null {
  const membership = data === null ? null : parseUsableMembership(DECODER.decode(data));
  return membership === null || 'fault' in membership ? null : membership;
}

function isSameBytes(a: Uint8Array | null, b: Uint8Array): boolean {
  return a !== null && a.length === b.length && a.every((byte, i) => byte === b[i]);
}
