import { Announcement, type ElectionNotification, ServerState } from '@meerkat/protocol';
import type { Vote } from './vote.ts';

/**
 * What an election knows about another server, besides its last notification in the tally. Lasts as long as its
 * connection.
 */
export interface Peer {
  /** Its last notification said that it is looking for a leader. */
  isLooking: boolean;
  /** It was not looking when it received this server's vote, so it has not counted it. */
  missedMyVote: boolean;
  /** It has been sent a reply since this server decided. */
  hasAsked: boolean;
  /** It decides without waiting once all reachable voters agree; Apache servers always wait. */
  settlesEarly: boolean;
  /** As a leader it checks promised epochs for plausibility; Apache leaders accept any epoch. */
  checksPromises: boolean;
  /** Epoch of the history with which it last stood for election; null if it has not stood. */
  historyEpoch: number | null;
  lastAnswer: { state: ServerState; round: number; vote: Vote; atMs: number } | null;
}

/** The other servers. One that has neither connected nor been found unreachable may still appear. */
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
    const peer: Peer = { ...flags, checksPromises: false, historyEpoch: null, lastAnswer: null };
    this.#peers.set(id, peer);
    return peer;
  }

  /** Records what a server announces about itself. */
  onNotification(from: number, { state, leader, peerEpoch, announces }: ElectionNotification): void {
    const peer = this.get(from);
    peer.isLooking = state === ServerState.looking;
    if ((announces & Announcement.settlesEarly) !== 0) peer.settlesEarly = true;
    if ((announces & Announcement.refusesOlderEpochs) !== 0) peer.checksPromises = true;
    if (peer.isLooking && leader === from) peer.historyEpoch = peerEpoch;
  }

  /** The servers last known to be looking. */
  lookers(): readonly number[] {
    return [...this.#peers].filter(([, peer]) => peer.isLooking).map(([id]) => id);
  }

  /** The connected servers that are not known to be looking. */
  settled(): readonly number[] {
    return [...this.#connected].filter((id) => this.#peers.get(id)?.isLooking !== true);
  }

  /** A new decision has been made, which no peer has been sent yet. */
  forgetAskers(): void {
    for (const peer of this.#peers.values()) peer.hasAsked = false;
  }

  /** Returns the looking servers that have been sent a reply since the decision, each only once. */
  takeAskers(): readonly number[] {
    const askers = [...this.#peers].filter(([, peer]) => peer.hasAsked && peer.isLooking).map(([id]) => id);
    for (const id of askers) this.get(id).hasAsked = false;
    return askers;
  }
}
