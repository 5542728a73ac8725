import { type Client, connect } from '@meerkat/client';
import type { SeededRandom } from '@meerkat/simulator';
import type { TortureNetwork } from './network.ts';
import { memberLine, type Role, SUPER_USER } from './server-files.ts';

/** A requested change, in the form that `reconfig` takes. */
export type MemberChange =
  | { readonly joining?: readonly string[]; readonly leaving?: readonly number[] }
  | { readonly members: readonly string[] };

/** Timeout of a change in milliseconds; another change may be requested meanwhile. */
const PATIENCE_MS = 3000;
const RETRY_MS = 200;
/** The operator never asks for fewer participants. */
const PARTICIPANTS_MIN = 2;

/** Changes the members of a running ensemble. The leader may refuse a change, and the answer may be lost. */
export class Operator {
  readonly #network: TortureNetwork;
  readonly #say: (what: string) => void;
  /** Changes that the ensemble has acknowledged. */
  changes = 0;

  constructor(network: TortureNetwork, say: (what: string) => void) {
    this.#network = network;
    this.#say = say;
  }

  /** Asks for one change. @param leader id of the server that leads; null when none does */
  async change(random: SeededRandom, leader: number | null): Promise<void> {
    await this.#withClient(async (client) => {
      const { data, stat } = await client.config({ timeoutMs: PATIENCE_MS });
      const change = drawChange(random, parseRoles(data), this.#ids, leader, (id, role) => this.#line(id, role));
      if (change === null) return;
      // The change is refused when the list has changed since it was read.
      const version = random.chance(0.3) ? { fromVersion: stat.mzxid } : {};
      this.#say(`an operator changes the members: ${JSON.stringify(change)}`);
      await this.#reconfig(client, { ...change, ...version });
      this.#say('the members are changed');
    }).catch((error: Error) => this.#say(`the members are not changed, or it is not known: ${firstLine(error)}`));
  }

  /**
   * Makes one server an observer, and then every server a participant, retrying until it succeeds: a healthy ensemble
   * must accept the change.
   */
  async restore(isOver: () => boolean, demoted: number): Promise<void> {
    let isDemoted = false;
    while (!isOver()) {
      const isDone = await this.#withClient(async (client) => {
        const roles = parseRoles((await client.config({ timeoutMs: PATIENCE_MS })).data);
        isDemoted ||= roles.get(demoted) === 'observer';
        // One at a time: an observer does not count towards the quorum of the new membership.
        const missing = this.#ids.find((id) => roles.get(id) !== 'participant');
        if (missing === undefined && isDemoted) return true;
        const line = missing === undefined ? this.#line(demoted, 'observer') : this.#line(missing, 'participant');
        await this.#reconfig(client, { joining: [line] });
        return false;
      }).catch((error: Error) => {
        this.#say(`the members are not restored yet: ${firstLine(error)}`);
        return false;
      });
      if (isDone) return;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  async #reconfig(client: Client, change: MemberChange & { readonly fromVersion?: bigint }): Promise<void> {
    await client.reconfig({ ...change, timeoutMs: PATIENCE_MS });
    this.changes++;
  }

  get #ids(): readonly number[] {
    return this.#network.places.map(({ id }) => id);
  }

  #line(id: number, role: Role): string {
    return memberLine(this.#network.places.find((place) => place.id === id)!, role);
  }

  async #withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = await connect({
      servers: this.#network.connectString(1, this.#ids),
      auth: [{ scheme: 'digest', auth: SUPER_USER }],
      sessionTimeoutMs: 2000,
      connectTimeoutMs: PATIENCE_MS,
    });
    try {
      return await work(client);
    } finally {
      await client.close().catch(() => {});
    }
  }
}

function firstLine({ message }: Error): string {
  return message.split('\n', 1)[0]!;
}

/** Parses the member list in force. @returns roles of the members, by id */
export function parseRoles(data: Uint8Array): ReadonlyMap<number, Role> {
  const roles = new Map<number, Role>();
  for (const line of new TextDecoder().decode(data).split('\n')) {
    const match = /^server\.(\d+)=.*:(participant|observer)(;|$)/.exec(line);
    if (match !== null) roles.set(Number(match[1]), match[2] as Role);
  }
  return roles;
}

/** @returns null when the drawn change is not possible */
export function drawChange(
  random: SeededRandom,
  roles: ReadonlyMap<number, Role>,
  ids: readonly number[],
  leader: number | null,
  lineOf: (id: number, role: Role) => string,
): MemberChange | null {
  const participants = ids.filter((id) => roles.get(id) === 'participant');
  const observers = ids.filter((id) => roles.get(id) === 'observer');
  const outside = ids.filter((id) => !roles.has(id));
  const canLose = participants.length > PARTICIPANTS_MIN;
  const losable = canLose && leader !== null && random.chance(0.4) ? [leader] : canLose ? participants : [];
  const goes = [...losable, ...observers];
  const comes = [...outside, ...observers];
  const kind = random.pick(['leave', 'demote', 'join', 'join', 'exchange', 'list'] as const);
  switch (kind) {
    case 'leave':
      return goes.length === 0 ? null : { leaving: [random.pick(goes)] };
    case 'demote':
      return losable.length === 0 ? null : { joining: [lineOf(random.pick(losable), 'observer')] };
    case 'join': {
      if (comes.length === 0) return null;
      return { joining: [lineOf(random.pick(comes), random.chance(0.8) ? 'participant' : 'observer')] };
    }
    case 'exchange': {
      if (outside.length === 0 || participants.length === 0) return null;
      return { leaving: [random.pick(participants)], joining: [lineOf(random.pick(outside), 'participant')] };
    }
    case 'list': {
      const demoted = losable.length === 0 ? null : random.pick(losable);
      const members = [...roles.keys()].filter((id) => ids.includes(id));
      return { members: members.map((id) => lineOf(id, id === demoted ? 'observer' : 'participant')) };
    }
  }
}
