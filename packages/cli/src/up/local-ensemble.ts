import type { MemberFiles } from './layout.ts';
import { MemberProcess } from './member-process.ts';
import type { MemberPorts } from './ports.ts';

export interface EnsembleEvents {
  onChanged(): void;
  /** A server has ended without being asked to. */
  onDied(id: number, reason: string): void;
}

/** The servers of `meerkat up`, and who of them can reach whom. */
export class LocalEnsemble {
  /** Ordered by id, from 1 on. */
  readonly members: readonly MemberProcess[];

  constructor(files: readonly MemberFiles[], ports: readonly MemberPorts[], events: EnsembleEvents) {
    this.members = files.map(
      (each, i) =>
        new MemberProcess(each, ports[i]?.client ?? 0, {
          onChanged: () => events.onChanged(),
          onDied: (reason) => events.onDied(each.id, reason),
        }),
    );
  }

  get connectString(): string {
    return this.members.map(({ clientPort }) => `127.0.0.1:${clientPort}`).join(',');
  }

  get ids(): readonly number[] {
    return this.members.map(({ id }) => id);
  }

  /** The leader, if a quorum is running and can reach it; otherwise null. */
  get leader(): number | null {
    for (const { id, status } of this.members) {
      if (status?.role !== 'leading' || !status.isServing) continue;
      const standBy = this.members.filter((member) => this.#standsBy(member, id));
      if (standBy.some((member) => member.id === id) && standBy.length > this.members.length / 2) return id;
    }
    return null;
  }

  /** Whether every server serves clients under one leader. */
  get isWhole(): boolean {
    const { leader } = this;
    return (
      leader !== null && this.members.every((member) => member.status?.isServing && this.#standsBy(member, leader))
    );
  }

  member(id: number): MemberProcess {
    const member = this.members[id - 1];
    if (member === undefined) throw new RangeError(`there is no server ${id}`);
    return member;
  }

  start(): void {
    for (const member of this.members) member.start();
  }

  /** Cuts the network between groups of servers; those that no group names are one more. */
  partition(groups: readonly (readonly number[])[]): void {
    const groupOf = (id: number): number => groups.findIndex((group) => group.includes(id));
    for (const member of this.members) {
      member.cutOffFrom(this.ids.filter((id) => groupOf(id) !== groupOf(member.id)));
    }
  }

  heal(): void {
    for (const member of this.members) if (member.cutFrom.length > 0) member.cutOffFrom([]);
  }

  async stop(): Promise<void> {
    // No leader hands over across a cut.
    this.heal();
    await Promise.all(this.members.map((member) => member.stop()));
  }

  async kill(): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()));
  }

  #standsBy({ isPaused, status, cutFrom }: MemberProcess, leader: number): boolean {
    return !isPaused && status?.leader === leader && !cutFrom.includes(leader);
  }
}
