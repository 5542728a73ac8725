import type { ElectionNotification } from '@meerkat/protocol';
import { Election } from '../election/election.ts';
import {
  DEFAULT_ELECTION_OPTIONS,
  type Decision,
  type ElectionEffects,
  type Standing,
} from '../election/election-host.ts';
import { Electorate } from '../election/electorate.ts';
import { makeQuorum, type QuorumShape } from '../election/quorum.ts';
import { ApacheElection } from './apache-election.ts';
import { ManualClock } from './test-server.ts';

export interface EnsembleShape extends QuorumShape {
  readonly observers?: readonly number[];
  /** Servers that behave like Apache 3.8.0; the others are ours. */
  readonly apache?: readonly number[];
  /** Servers without a machine: messages to them are lost, and messages from them are injected by `deliver`. */
  readonly scripted?: readonly number[];
  /** Lease of our servers. Default 0: none. */
  readonly leaseMs?: number;
}

/** Events, reported after the step in which they happened. */
export interface EnsembleEvents {
  onSent?(from: number, to: number, notification: ElectionNotification): void;
  onDecided?(id: number, decision: Decision): void;
  onDecisionLost?(id: number): void;
  onConfigReceived?(id: number, configText: string): void;
  /** After every event. */
  onStep?(): void;
}

interface Message {
  readonly atMs: number;
  /** Number of messages sent before; orders messages of the same time. */
  readonly number: number;
  readonly from: number;
  readonly to: number;
  readonly notification: ElectionNotification;
}

/** Far more than any test run needs. */
const STEPS_MAX = 50_000;

type Machine = Election | ApacheElection;

/** The config text of every server, unless a test sets another one. */
export const CONFIG_TEXT = 'version=0';

/**
 * Elections of several servers on a virtual network. Connections are ordered until they break; messages in flight are
 * lost then. Everything happens in `step`, so every run can be repeated.
 */
export class ElectionEnsemble {
  readonly clock: ManualClock = new ManualClock();
  readonly electorate: Electorate;
  readonly ids: readonly number[];
  readonly #shape: EnsembleShape;
  readonly #events: EnsembleEvents;
  readonly #delayMs: () => number;
  readonly #machines = new Map<number, Machine>();
  readonly #cuts = new Set<string>();
  readonly #blackHoles = new Set<string>();
  /** Messages in flight between two servers, in the order in which they were sent. */
  readonly #links = new Map<string, Message[]>();
  readonly #lastSent = new Map<string, Message>();
  #sent = 0;
  #steps = 0;
  #pendingEvents: (() => void)[] = [];

  constructor(shape: EnsembleShape, events: EnsembleEvents, delayMs: () => number = () => 0) {
    this.#shape = shape;
    this.#events = events;
    this.#delayMs = delayMs;
    this.electorate = new Electorate(makeQuorum(shape));
    this.ids = [...shape.voters, ...(shape.observers ?? [])];
  }

  machine(id: number): Machine {
    const machine = this.#machines.get(id);
    if (machine === undefined) throw new Error(`server ${id} is not running`);
    return machine;
  }

  isRunning(id: number): boolean {
    return this.#machines.has(id);
  }

  /** True when messages from one of them reach the other. */
  isPassable(a: number, b: number): boolean {
    return this.isConnected(a, b) && !this.#blackHoles.has(pairOf(a, b));
  }

  #isThere(id: number): boolean {
    return this.isRunning(id) || (this.#shape.scripted?.includes(id) ?? false);
  }

  isApache(id: number): boolean {
    return this.#shape.apache?.includes(id) ?? false;
  }

  isObserver(id: number): boolean {
    return this.#shape.observers?.includes(id) ?? false;
  }

  isConnected(a: number, b: number): boolean {
    return this.#isThere(a) && this.#isThere(b) && !this.#cuts.has(pairOf(a, b));
  }

  /* --------------------------------------------------------------------------------------- server events ---- */

  /** Starts the server, or makes a running one look for a leader again. */
  look(
    id: number,
    { lastZxid, currentEpoch }: Pick<Standing, 'lastZxid' | 'currentEpoch'>,
    isCandidate: boolean = true,
  ): void {
    const isNew = !this.#machines.has(id);
    if (isNew) this.#machines.set(id, this.#makeMachine(id));
    const learnerType = this.isObserver(id) ? 'observer' : 'participant';
    this.machine(id).look({ lastZxid, currentEpoch, learnerType, isCandidate });
    if (isNew) for (const other of this.ids) if (other !== id) this.#meet(id, other);
    this.#flushEvents();
  }

  crash(id: number): void {
    const peers = this.ids.filter((other) => this.isConnected(id, other));
    for (const other of peers) this.#loseMessages(id, other);
    this.#machines.delete(id);
    for (const other of peers) this.#machines.get(other)?.onPeerUnreachable(id);
    this.#flushEvents();
  }

  cut(a: number, b: number): void {
    const wereConnected = this.isConnected(a, b);
    this.#cuts.add(pairOf(a, b));
    this.#loseMessages(a, b);
    if (!wereConnected) return;
    this.#machines.get(a)?.onPeerUnreachable(b);
    this.#machines.get(b)?.onPeerUnreachable(a);
    this.#flushEvents();
  }

  /** All messages are lost, but neither end is notified. */
  swallow(a: number, b: number): void {
    this.#blackHoles.add(pairOf(a, b));
    this.#loseMessages(a, b);
  }

  /** @param isLastRepeated the last message in each direction is repeated, before anything else */
  heal(a: number, b: number, isLastRepeated = false): void {
    if (this.#blackHoles.delete(pairOf(a, b))) this.cut(a, b);
    if (!this.#cuts.delete(pairOf(a, b))) return;
    const last = isLastRepeated ? [this.#lastSent.get(linkOf(a, b)), this.#lastSent.get(linkOf(b, a))] : [];
    if (this.isConnected(a, b)) for (const message of last) if (message !== undefined) this.#transmit(message);
    this.#meet(a, b);
    this.#flushEvents();
  }

  healAll(): void {
    for (const pair of [...this.#blackHoles, ...this.#cuts]) {
      const [a, b] = pair.split(' ').map(Number) as [number, number];
      this.heal(a, b);
    }
  }

  establish(id: number, epoch: number): void {
    this.machine(id).onEpochEstablished(epoch);
    this.#flushEvents();
  }

  /** Delivers a message to a server that none of the machines has sent. */
  deliver(from: number, to: number, notification: ElectionNotification): void {
    this.machine(to).onNotification(from, notification);
    this.#flushEvents();
  }

  /* ---------------------------------------------------------------------------------------------- running ---- */

  /** Time of the next event, in milliseconds of the clock; Infinity when nothing is in flight or due. */
  get nextEventMs(): number {
    let atMs = Number.POSITIVE_INFINITY;
    for (const [first] of this.#links.values()) if (first !== undefined) atMs = Math.min(atMs, first.atMs);
    for (const machine of this.#machines.values()) atMs = Math.min(atMs, machine.nextDeadlineMs);
    return atMs;
  }

  /** Advances the clock to the next event, and runs it. */
  step(): void {
    this.#countStep();
    this.clock.nowMs = Math.max(this.clock.nowMs, this.nextEventMs);
    if (!this.#deliverNext()) {
      for (const machine of this.#machines.values()) if (machine.nextDeadlineMs <= this.clock.nowMs) machine.onTick();
    }
    this.#flushEvents();
  }

  /** Delivers messages in flight, and their answers, at the current time. */
  deliverAll(): void {
    while (this.#deliverNext()) {
      this.#countStep();
      this.#flushEvents();
    }
  }

  advance(ms: number): void {
    const untilMs = this.clock.nowMs + ms;
    while (this.nextEventMs <= untilMs) this.step();
    this.clock.nowMs = untilMs;
  }

  #countStep(): void {
    if (++this.#steps > STEPS_MAX) throw new Error('the servers never stop talking');
  }

  #deliverNext(): boolean {
    let next: Message[] | null = null;
    for (const link of this.#links.values()) {
      const atMs = link[0]?.atMs ?? Number.POSITIVE_INFINITY;
      if (atMs <= this.clock.nowMs && (next === null || isEarlier(link[0]!, next[0]!))) next = link;
    }
    const message = next?.shift();
    if (message === undefined) return false;
    this.#machines.get(message.to)?.onNotification(message.from, message.notification);
    return true;
  }

  /* ---------------------------------------------------------------------------------------------- network ---- */

  #makeMachine(id: number): Machine {
    const effects: ElectionEffects = {
      sendNotification: (to, notification) => {
        const atMs = this.clock.nowMs + this.#delayMs();
        const message = { atMs, number: ++this.#sent, from: id, to, notification };
        this.#lastSent.set(linkOf(id, to), message);
        this.#pendingEvents.push(() => this.#events.onSent?.(id, to, notification));
        if (this.isConnected(id, to)) this.#transmit(message);
      },
      decided: (decision) => this.#pendingEvents.push(() => this.#events.onDecided?.(id, decision)),
      olderEpochLeads: () => {},
      outranked: () => {},
      decisionLost: () => this.#pendingEvents.push(() => this.#events.onDecisionLost?.(id)),
      configReceived: (_from, text) => this.#pendingEvents.push(() => this.#events.onConfigReceived?.(id, text)),
    };
    const { clock, electorate } = this;
    if (this.isApache(id)) return new ApacheElection(id, clock, electorate, effects);
    const options = { serverId: id, ...DEFAULT_ELECTION_OPTIONS, leaseMs: this.#shape.leaseMs ?? 0 };
    return new Election(options, clock, electorate, CONFIG_TEXT, effects);
  }

  /** After the messages that are in flight already. */
  #transmit(message: Message): void {
    const { from, to } = message;
    if (this.#blackHoles.has(pairOf(from, to))) return;
    const name = linkOf(from, to);
    const link = this.#links.get(name) ?? [];
    this.#links.set(name, link);
    link.push({ ...message, atMs: Math.max(this.clock.nowMs, message.atMs, link.at(-1)?.atMs ?? 0) });
  }

  /** Tries to connect the two. */
  #meet(a: number, b: number): void {
    const pairs: [number, number][] = [
      [a, b],
      [b, a],
    ];
    for (const [one, other] of pairs) {
      const machine = this.#machines.get(one);
      if (machine === undefined) continue;
      if (!this.isConnected(a, b)) {
        machine.onPeerUnreachable(other);
        continue;
      }
      machine.onPeerConnected(other);
    }
  }

  #loseMessages(a: number, b: number): void {
    this.#links.delete(linkOf(a, b));
    this.#links.delete(linkOf(b, a));
  }

  #flushEvents(): void {
    while (this.#pendingEvents.length > 0) {
      const pendingEvents = this.#pendingEvents;
      this.#pendingEvents = [];
      for (const event of pendingEvents) event();
    }
    this.#events.onStep?.();
  }
}

function isEarlier(a: Message, b: Message): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.number < b.number);
}

function pairOf(a: number, b: number): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}

function linkOf(from: number, to: number): string {
  return `${from}>${to}`;
}
