import { epochOf, makeZxid, ServerState, type Zxid } from '@meerkat/protocol';
import type { Decision } from '../election/election-host.ts';
import { ElectionEnsemble, type EnsembleEvents, type EnsembleShape } from './election-ensemble.ts';

/** The state that a server keeps across a crash. */
interface Disk {
  lastZxid: Zxid;
  currentEpoch: number;
  acceptedEpoch: number;
}

interface Role {
  /** The leader that it follows or observes; its own id when it leads. */
  readonly leader: number;
  /** Servers that have connected to this leader. */
  readonly learners: Set<number>;
  /** Set once leader and quorum have agreed on a new epoch. */
  isEstablished: boolean;
  attempts: number;
  /** When to try again, or to abort. */
  deadlineMs: number;
}

const CONNECT_PAUSE_MS = 100;
const CONNECT_ATTEMPTS = 5;
const INIT_LIMIT_MS = 2000;
const SYNC_LIMIT_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;

/**
 * A minimal model of what follows an election: learners connect to the leader; with a quorum it begins an epoch that
 * none of them has accepted before, and synchronizes all of them with its log; it writes; leader and learners return to
 * the election when they lose the quorum. All this takes no time: only the elections are simulated.
 */
export class ElectionRoles {
  readonly ensemble: ElectionEnsemble;
  readonly disks = new Map<number, Disk>();
  /** The last zxid that a quorum has. */
  committed: Zxid = makeZxid(0, 0);
  /** Leader of every epoch that has been established. */
  readonly leaderOfEpoch = new Map<number, number>();
  readonly #roles = new Map<number, Role>();
  /** Servers that cannot listen for followers. */
  readonly #deaf = new Set<number>();
  /** When a silence between two servers will have lasted long enough for both to notice. */
  #silences: { readonly untilMs: number; readonly a: number; readonly b: number }[] = [];

  constructor(shape: EnsembleShape, events: EnsembleEvents, delayMs: () => number) {
    this.ensemble = new ElectionEnsemble(
      shape,
      {
        ...events,
        onDecided: (id, decision) => {
          events.onDecided?.(id, decision);
          this.#onDecided(id, decision);
        },
        onDecisionLost: (id) => {
          if (this.#roles.get(id)?.isEstablished === false) this.#look(id);
        },
      },
      delayMs,
    );
    for (const id of this.ensemble.ids) {
      this.disks.set(id, { lastZxid: makeZxid(0, 0), currentEpoch: 0, acceptedEpoch: 0 });
    }
  }

  role(id: number): Role | undefined {
    return this.#roles.get(id);
  }

  start(id: number): void {
    if (!this.ensemble.isRunning(id)) this.#look(id);
  }

  crash(id: number): void {
    if (!this.ensemble.isRunning(id)) return;
    this.ensemble.crash(id);
    this.#endRole(id);
  }

  cut(a: number, b: number): void {
    this.ensemble.cut(a, b);
    this.#disconnect(a, b);
  }

  swallow(a: number, b: number): void {
    this.ensemble.swallow(a, b);
    this.#silences.push({ untilMs: this.ensemble.clock.nowMs + SYNC_LIMIT_MS, a, b });
  }

  heal(a: number, b: number, isLastRepeated: boolean): void {
    if (!this.ensemble.isPassable(a, b)) this.#disconnect(a, b);
    this.ensemble.heal(a, b, isLastRepeated);
  }

  /**
   * Whether the server can listen for followers. Open connections stay; an Apache server is a candidate all the same.
   */
  setDeaf(id: number, isDeaf: boolean): void {
    if (this.#deaf.has(id) === isDeaf) return;
    if (isDeaf) this.#deaf.add(id);
    else this.#deaf.delete(id);
    if (!this.ensemble.isRunning(id) || this.ensemble.isApache(id)) return;
    const role = this.#roles.get(id);
    if (role === undefined || (isDeaf && role.leader === id && !role.isEstablished)) this.#look(id);
  }

  isDeaf(id: number): boolean {
    return this.#deaf.has(id);
  }

  /** The leader proposes a txn that reaches these followers. */
  write(leader: number, reached: (id: number) => boolean): void {
    const role = this.#roles.get(leader);
    const disk = this.#disk(leader);
    if (role?.leader !== leader || !role.isEstablished) return;
    disk.lastZxid = (disk.lastZxid + 1) as Zxid;
    const acks = [leader];
    for (const id of role.learners) {
      // A follower that missed a txn logs no later one.
      if (!reached(id) || this.#disk(id).lastZxid !== disk.lastZxid - 1) continue;
      this.#disk(id).lastZxid = disk.lastZxid;
      acks.push(id);
    }
    if (this.ensemble.electorate.isQuorum(acks)) this.committed = disk.lastZxid;
  }

  get nextEventMs(): number {
    let atMs = this.ensemble.nextEventMs;
    for (const role of this.#roles.values()) atMs = Math.min(atMs, role.deadlineMs);
    return atMs;
  }

  runUntil(untilMs: number): void {
    while (this.nextEventMs <= untilMs) this.#step();
    this.ensemble.clock.nowMs = Math.max(this.ensemble.clock.nowMs, untilMs);
  }

  /** @returns false when the condition did not come true in time */
  runUntilTrue(condition: () => boolean, withinMs: number): boolean {
    const untilMs = this.ensemble.clock.nowMs + withinMs;
    while (!condition()) {
      if (this.nextEventMs > untilMs) return false;
      this.#step();
    }
    return true;
  }

  /** True when one server leads and all others have synchronized with it. */
  isWhole(): boolean {
    const leaders = new Set([...this.#roles.values()].map(({ leader }) => leader));
    const isEverybodyThere = this.ensemble.ids.every((id) => this.#roles.get(id)?.isEstablished);
    return isEverybodyThere && leaders.size === 1;
  }

  /** True when some leader has synchronized with a quorum, whatever the state of the other servers. */
  isServing(): boolean {
    const { electorate, ids } = this.ensemble;
    return ids.some((leader) => {
      const role = this.#roles.get(leader);
      return role?.leader === leader && role.isEstablished && electorate.isQuorum([leader, ...role.learners]);
    });
  }

  #step(): void {
    const { clock } = this.ensemble;
    const due = [...this.#roles].find(([, role]) => role.deadlineMs <= clock.nowMs);
    if (due !== undefined) {
      this.#onDeadline(...due);
      return;
    }
    const roleMs = Math.min(...[...this.#roles.values()].map(({ deadlineMs }) => deadlineMs));
    if (roleMs < this.ensemble.nextEventMs) clock.nowMs = roleMs;
    else this.ensemble.step();
    this.#endSilences();
  }

  #endSilences(): void {
    const { nowMs } = this.ensemble.clock;
    const over = this.#silences.filter(({ untilMs }) => untilMs <= nowMs);
    this.#silences = this.#silences.filter(({ untilMs }) => untilMs > nowMs);
    for (const { a, b } of over) if (!this.ensemble.isPassable(a, b)) this.#disconnect(a, b);
  }

  #onDecided(id: number, { state, leader }: Decision): void {
    const isLeading = state === ServerState.leading;
    const { nowMs } = this.ensemble.clock;
    const deadlineMs = isLeading ? nowMs + INIT_LIMIT_MS : nowMs;
    this.#roles.set(id, { leader, learners: new Set(), isEstablished: false, attempts: 0, deadlineMs });
    if (isLeading) this.#maybeEstablish(id);
  }

  #onDeadline(id: number, role: Role): void {
    if (role.leader === id || role.attempts === CONNECT_ATTEMPTS) {
      this.#look(id);
      return;
    }
    role.attempts++;
    role.deadlineMs = this.ensemble.clock.nowMs + CONNECT_PAUSE_MS;
    const leading = this.#roles.get(role.leader);
    if (leading?.leader !== role.leader || !this.ensemble.isPassable(id, role.leader)) return;
    if (this.#deaf.has(role.leader)) return;
    role.deadlineMs = NEVER;
    leading.learners.add(id);
    if (leading.isEstablished) this.#synchronize(id, role.leader);
    else this.#maybeEstablish(role.leader);
  }

  /** Discovery: an epoch above any accepted in the quorum, led by the server with the latest history in it. */
  #maybeEstablish(leader: number): void {
    const role = this.#roles.get(leader)!;
    const disk = this.#disk(leader);
    for (const id of [...role.learners]) if (isLater(this.#disk(id), disk)) this.#refuse(leader, id);
    const members = [leader, ...role.learners];
    if (!this.ensemble.electorate.isQuorum(members)) return;
    const epoch = 1 + Math.max(...members.map((id) => this.#disk(id).acceptedEpoch));
    if (this.leaderOfEpoch.has(epoch)) throw new Error(`epoch ${epoch} has two leaders`);
    if (disk.lastZxid < this.committed) throw new Error(`${leader} leads without what was committed`);
    this.leaderOfEpoch.set(epoch, leader);
    role.isEstablished = true;
    role.deadlineMs = NEVER;
    disk.acceptedEpoch = epoch;
    disk.currentEpoch = epoch;
    if (epochOf(disk.lastZxid) < epoch) disk.lastZxid = makeZxid(epoch, 0);
    this.ensemble.establish(leader, epoch);
    for (const id of role.learners) this.#synchronize(id, leader);
    this.committed = disk.lastZxid;
  }

  /** A learner has a later history than the leader; once others have confirmed the leader, it truncates its own. */
  #refuse(leader: number, learner: number): void {
    this.#roles.get(leader)!.learners.delete(learner);
    this.#roles.get(learner)!.deadlineMs = this.ensemble.clock.nowMs + CONNECT_PAUSE_MS;
  }

  #synchronize(id: number, leader: number): void {
    const { lastZxid, currentEpoch } = this.#disk(leader);
    if (this.#disk(id).acceptedEpoch > currentEpoch) {
      this.#look(id);
      return;
    }
    this.disks.set(id, { lastZxid, currentEpoch, acceptedEpoch: currentEpoch });
    this.#roles.get(id)!.isEstablished = true;
    this.ensemble.establish(id, currentEpoch);
  }

  #disconnect(a: number, b: number): void {
    for (const [learner, leader] of [
      [a, b],
      [b, a],
    ] as const) {
      if (this.#roles.get(leader)?.learners.has(learner)) {
        this.#dropLearner(leader, learner);
        this.#look(learner);
      }
    }
  }

  #look(id: number): void {
    this.#endRole(id);
    this.ensemble.look(id, this.#disk(id), !this.#deaf.has(id));
  }

  /** The servers that relied on this one notice. */
  #endRole(id: number): void {
    const role = this.#roles.get(id);
    if (role === undefined) return;
    this.#roles.delete(id);
    if (role.leader === id) for (const learner of role.learners) this.#look(learner);
    else this.#dropLearner(role.leader, id);
  }

  #dropLearner(leader: number, learner: number): void {
    const role = this.#roles.get(leader);
    if (role?.learners.delete(learner) !== true || !role.isEstablished) return;
    if (!this.ensemble.electorate.isQuorum([leader, ...role.learners])) this.#look(leader);
  }

  #disk(id: number): Disk {
    return this.disks.get(id)!;
  }
}

function isLater(a: Disk, b: Disk): boolean {
  return a.currentEpoch > b.currentEpoch || (a.currentEpoch === b.currentEpoch && a.lastZxid > b.lastZxid);
}
