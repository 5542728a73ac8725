import type { Interface } from 'node:readline';
import type { MemberProcess } from './member-process.ts';
import type { MemberStatus } from './messages.ts';

/** Where messages and the state of all servers are shown. */
export interface Screen {
  /** Something has happened that stays to be read. */
  print(message: string): void;
  /** Servers do something else than before. */
  update(): void;
  /** The state of all servers, on request. */
  showAll(): void;
  close(): void;
}

/** For pipes and files: a line whenever a server's role or epoch changes. */
export class LineScreen implements Screen {
  readonly #members: readonly MemberProcess[];
  readonly #write: (text: string) => void;
  readonly #last = new Map<number, string>();

  constructor(members: readonly MemberProcess[], write: (text: string) => void) {
    this.#members = members;
    this.#write = write;
  }

  print(message: string): void {
    this.#write(`${message}\n`);
  }

  update(): void {
    for (const member of this.#members) {
      const state = `${describeRole(member)}, epoch ${member.status?.epoch ?? 0}`;
      if (this.#last.get(member.id) === state) continue;
      this.#last.set(member.id, state);
      this.#write(`${describeMember(member, this.#members)}\n`);
    }
  }

  showAll(): void {
    for (const member of this.#members) this.#write(`${describeMember(member, this.#members)}\n`);
  }

  close(): void {}
}

/**
 * For a terminal: messages scroll; below them is the state of all servers, above the line that is being typed.
 *
 *     server 2 was killed
 *     server 1  127.0.0.1:2181  leader      epoch 2  zxid 0x200000001
 *     server 2  127.0.0.1:2182  dead
 *     server 3  127.0.0.1:2183  follower    epoch 2  zxid 0x200000001
 *     > restart 2
 */
export class TerminalScreen implements Screen {
  readonly #members: readonly MemberProcess[];
  readonly #input: Interface;
  readonly #write: (text: string) => void;
  /** Lines between the first one of the table and the cursor. */
  #height = 0;
  #isClosed = false;

  constructor(members: readonly MemberProcess[], input: Interface, write: (text: string) => void) {
    this.#members = members;
    this.#input = input;
    this.#write = write;
    // The cursor is in the line below the one that was typed.
    input.on('line', () => {
      this.#height++;
    });
  }

  print(message: string): void {
    this.#draw(`${message}\n`);
  }

  update(): void {
    this.#draw('');
  }

  showAll(): void {
    this.#draw('');
  }

  close(): void {
    this.#isClosed = true;
    // Discard the line that was being typed.
    this.#write('\r\u001b[J');
  }

  #draw(message: string): void {
    const up = this.#height === 0 ? '' : `\u001b[${this.#height}A`;
    if (this.#isClosed) {
      this.#write(message);
      return;
    }
    const table = this.#members.map((member) => `${describeMember(member, this.#members)}\n`).join('');
    this.#write(`\r${up}\u001b[J${message}${table}`);
    this.#height = this.#members.length;
    this.#input.prompt(true);
  }
}

/** One server, as the table needs it. */
export type ShownMember = Pick<MemberProcess, 'id' | 'clientPort' | 'status' | 'cutFrom' | 'isRunning' | 'isPaused'>;

/**
 * `server 1  127.0.0.1:2181  follower    epoch 1  zxid 0x100000005  cut off from 2, 3`, and of a server that does not serve
 * because too few reach each other `server 1  127.0.0.1:2181  looking     epoch 1  no quorum: 1 of 3`.
 */
export function describeMember(member: ShownMember, members: readonly ShownMember[]): string {
  const { id, clientPort, status, cutFrom } = member;
  const cuts = cutFrom.length === 0 ? [] : [`cut off from ${cutFrom.join(', ')}`];
  return [
    `server ${id}`,
    `127.0.0.1:${clientPort}`,
    describeRole(member).padEnd(10),
    ...(status === null ? [] : [`epoch ${status.epoch}`, ...describeService(member, status, members)]),
    ...cuts,
  ]
    .join('  ')
    .trimEnd();
}

function describeService(member: ShownMember, status: MemberStatus, members: readonly ShownMember[]): string[] {
  if (status.isServing) return [`zxid 0x${status.lastZxid.toString(16)}`];
  const group = members.filter(
    (other) => other.isRunning && !other.isPaused && (other === member || !member.cutFrom.includes(other.id)),
  );
  // With a quorum it is between two roles, for a moment.
  return group.length > members.length / 2 ? [] : [`no quorum: ${group.length} of ${members.length}`];
}

const ROLES = { looking: 'looking', leading: 'leader', following: 'follower', observing: 'observer' } as const;

function describeRole({ isRunning, isPaused, status }: ShownMember): string {
  if (!isRunning) return 'dead';
  if (isPaused) return 'paused';
  if (status === null) return 'starting';
  return status.isServing || status.role === 'looking' ? ROLES[status.role] : `${ROLES[status.role]}, not serving`;
}
