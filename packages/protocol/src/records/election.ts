/**
 * The vote that servers exchange on the election port (FastLeaderElection). One frame holds one notification; its length
 * depends on the release of the sender:
 *
 *     notification := int state, long leader, long zxid, long electionEpoch                  28 bytes, before 3.3
 *                     long peerEpoch, int version                                            40 bytes, before 3.5
 *                     int length, config text in UTF-8                                       version 2 and later
 *                     announcement?                                                          of ours
 */
import type { JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';
import { epochOf, isZxid, type Zxid } from '../zxid.ts';
import { readAnnouncement, writeAnnouncement } from './announcement.ts';

/** State of a server, as in its notifications. */
export const ServerState = { looking: 0, following: 1, leading: 2, observing: 3 } as const;
export type ServerState = (typeof ServerState)[keyof typeof ServerState];

export interface ElectionNotification {
  readonly state: ServerState;
  /** Server id of the proposed leader; VOTE_NONE from a server without a vote, such as an observer. */
  readonly leader: number;
  /** Last zxid of the proposed leader; −1 from a server whose data cannot be trusted, ZXID_VOTE_NONE without a vote. */
  readonly zxid: Zxid;
  /** Round of the election (`logicalclock`); −1 in the vote of a server that has been in no election yet. */
  readonly electionEpoch: number;
  /** Epoch whose history the proposed leader has adopted; VOTE_NONE without a vote. */
  readonly peerEpoch: number;
  /** NOTIFICATION_VERSION in current releases; always 0 when read from the two older layouts. */
  readonly version: number;
  /** Text of the membership that the sender follows, to be read by `parseMembership`; null before version 2. */
  readonly configText: string | null;
  /** A sum of Announcement; 0 from Apache's servers, and before version 2. */
  readonly announces: number;
}

/** The version that has a config. */
export const NOTIFICATION_VERSION = 2;

/**
 * Less than every server id, zxid and epoch: the value in the vote of an observer (Long.MIN_VALUE). Not a safe integer,
 * but an exact one, so votes are compared like other numbers.
 */
export const VOTE_NONE: number = -(2 ** 63);

/** VOTE_NONE as a zxid. */
export const ZXID_VOTE_NONE: Zxid = VOTE_NONE as Zxid;

/** Largest frame of the election port, and largest config in it, in bytes. A longer one ends the connection. */
export const ELECTION_FRAME_BYTES_MAX: number = 512 * 1024;

/** Writes the payload of a frame. Versions 0 and 1 are written in 40 bytes, without the config. */
export function writeElectionNotification(writer: JuteWriter, notification: ElectionNotification): void {
  writer.int(notification.state);
  writer.long(notification.leader);
  writer.long(notification.zxid);
  writer.long(notification.electionEpoch);
  writer.long(notification.peerEpoch);
  writer.int(notification.version);
  if (notification.version < NOTIFICATION_VERSION) return;
  writer.ustring(notification.configText ?? '');
  writeAnnouncement(writer, notification.announces);
}

/**
 * Reads a payload that ends where the reader ends.
 *
 * @returns null for an invalid notification, which is ignored while the connection stays open. This includes one that
 *   Apache accepts but that holds an id, a zxid or an epoch that is no exact number
 */
export function readElectionNotification(reader: JuteReader): ElectionNotification | null {
  const length = reader.remaining;
  const state = reader.int();
  const leader = readVoteLong(reader);
  const zxid = readVoteLong(reader);
  const electionEpoch = reader.long();
  if (reader.failed || !isServerState(state) || !isVoteZxid(zxid)) return null;
  const vote = { state, leader, zxid, electionEpoch };
  const short = { version: 0, configText: null, announces: 0 };
  if (length === WITHOUT_PEER_EPOCH) return { ...vote, peerEpoch: epochOf(zxid), ...short };

  const peerEpoch = readVoteLong(reader);
  const versionThere = reader.int();
  if (reader.failed) return null;
  const version = length === WITHOUT_CONFIG ? 0 : versionThere;
  if (version < NOTIFICATION_VERSION) return { ...vote, peerEpoch, ...short, version };

  const configText = reader.ustring();
  const announces = readAnnouncement(reader);
  return reader.failed || configText === null ? null : { ...vote, peerEpoch, version, configText, announces };
}

/** Payload of a frame that requests or gives a sign of life. Apache's servers ignore frames this short. */
export const ElectionProbe = { asks: 1, answers: 2 } as const;
export type ElectionProbe = (typeof ElectionProbe)[keyof typeof ElectionProbe];

export const ELECTION_PROBE_BYTES = 4;

export function writeElectionProbe(writer: JuteWriter, probe: ElectionProbe): void {
  writer.int(probe);
}

/** @param reader holds ELECTION_PROBE_BYTES. @returns null when it is no probe */
export function readElectionProbe(reader: JuteReader): ElectionProbe | null {
  const value = reader.int();
  return value === ElectionProbe.asks || value === ElectionProbe.answers ? value : null;
}

const WITHOUT_PEER_EPOCH = 28;
const WITHOUT_CONFIG = 40;

function readVoteLong(reader: JuteReader): number {
  const start = reader.position;
  const high = reader.int();
  const low = reader.int();
  if (high === -0x80000000 && low === 0 && !reader.failed) return VOTE_NONE;
  reader.position = start;
  return reader.long();
}

function isServerState(value: number): value is ServerState {
  return value >= ServerState.looking && value <= ServerState.observing;
}

function isVoteZxid(value: number): value is Zxid {
  return value === ZXID_VOTE_NONE || isZxid(value);
}
