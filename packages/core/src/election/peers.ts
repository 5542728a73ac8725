import { Announcement, type ElectionNotification, ServerState } from '@meerkat/protocol';
import type { Vote } from './vote.ts';

/** What an election knows of another server, beside its last word in the tally. Lasts as long as its connection. */
export interface Peer {
  /** Its last notification said that it is looking for a leader. */
  isLooking: boolean;
  /** It was not looking when it heard this server's vote, so it has not counted it. */
  missedMyVote: boolean;
  /** It has been answered since this server decided. */
  hasAsked: boolean;
  /** It decides without waiting once everybody who can be reached agrees; Apache's servers always wait. */
  settlesEarly: boolean;
  /** As a leader it believes a promise only as far as elections can have led; Apache's believe any. */
  judgesPromises: boolean;
  /** Epoch of the history with which it stood for election last; null when it has not stood. */
  historyEpoch: number | null;
  lastAnswer: { state: ServerState; round: number; vote: Vote; atMs: number } | null;
}

/** The other servers. One that has neither been connected nor found unreachable may still turn up. */
export class Peers {
  readonly #peers = new Map<number, Peer>();
  readonly #connected = new Set<number>();
  readonly #unreachable = new Set<number>();

  connect(id: number): void {
    this.#peers.delete(id);
    this.#unreachable.delete(id);
    this.#connected.add(id);
  }

  disconnect(id: number): void {
    this.#peers.delete(id);
    this.#connected.delete(id);
    this.#unreachable.add(id);
  }

  isConnected(id: number): boolean {
    return this.#connected.has(id);
  }

  isUnreachable(id: number): boolean {
    return this.#unreachable.has(id);
  }

  get(id: number): Peer {
    const known = this.#peers.get(id);
    if (known !== undefined) return known;
    const flags = { isLooking: false, missedMyVote: false, hasAsked: false, settlesEarly: false };
    const peer: Peer = { ...flags, judgesPromises: false, historyEpoch: null, lastAnswer: null };
    this.#peers.set(id, peer);
    return peer;
  }

  /** Notes what a server says of itself. */
  onNotification(from: number, { state, leader, peerEpoch, announces }: ElectionNotification): void {
    const peer = this.get(from);
    peer.isLooking = state === ServerState.looking;
    if ((announces & Announcement.settlesEarly) !== 0) peer.settlesEarly = true;
    if ((announces & Announcement.outlastsOlderEpochs) !== 0) peer.judgesPromises = true;
    if (peer.isLooking && leader === from) peer.historyEpoch = peerEpoch;
  }

  /** Those that are looking, as far as is known. */
  lookers(): readonly number[] {
    return [...this.#peers].filter(([, peer]) => peer.isLooking).map(([id]) => id);
  }

  /** A new decision has been made: nobody has been told of it yet. */
  forgetAskers(): void {
    for (const peer of this.#peers.values()) peer.hasAsked = false;
  }

  /** Those that have been answered since the decision; they are told no second time. */
  takeAskers(): readonly number[] {
    const askers = [...this.#peers].filter(([, peer]) => peer.hasAsked && peer.isLooking).map(([id]) => id);
    for (const id of askers) this.get(id).hasAsked = false;
    return askers;
  }
}
