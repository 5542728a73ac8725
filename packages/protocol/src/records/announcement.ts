/**
 * What our servers announce to each other: an extension behind the last field that Apache's servers read, which they
 * ignore.
 *
 *     announcement := int 0x4d4b4154 ("MKAT"), int announces      a sum of Announcement; left out when it is 0
 *
 * It ends a notification of the election, the data of FOLLOWERINFO and OBSERVERINFO, and those of LEADERINFO.
 */
import type { JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';

/** Known bits; servers of other releases may set more. Bits 8 to 29 hold a number, see `leaseMsOf`. */
export const Announcement = {
  /** Decides an election without waiting once every voter that can be reached votes alike. */
  settlesEarly: 1,
  /** Understands HANDOVER. */
  takesHandOver: 2,
  /**
   * A learner whose log can be relied on: it is durable up to the reported zxid, and TRUNC is exact and durable. The
   * log of an Apache server may end in txns that were never synced, and truncated txns may come back from a snapshot
   * (ZOOKEEPER-4646, 1549).
   */
  keepsLog: 4,
  /** Does not follow a leader of an older epoch than its own history, but keeps standing for election. */
  refusesOlderEpochs: 8,
} as const;
export type Announcement = (typeof Announcement)[keyof typeof Announcement];

/** The longest lease that an announcement can name, in milliseconds: more than an hour. */
export const LEASE_MS_MAX: number = 2 ** 22 - 1;
const LEASE_SHIFT = 8;

/** The announcement bits of a lease, see docs/leases.md. @param leaseMs 0: no lease */
export function announcedLease(leaseMs: number): number {
  return leaseMs << LEASE_SHIFT;
}

/** Milliseconds; 0 for a server without leases. */
export function leaseMsOf(announces: number): number {
  return (announces >>> LEASE_SHIFT) & LEASE_MS_MAX;
}

const MAGIC = 0x4d4b4154;
const ANNOUNCEMENT_BYTES = 8;

export function writeAnnouncement(writer: JuteWriter, announces: number): void {
  if (announces === 0) return;
  writer.int(MAGIC);
  writer.int(announces);
}

/** Reads the rest of a record. @returns 0 when it is empty, or no announcement */
export function readAnnouncement(reader: JuteReader): number {
  return reader.remaining >= ANNOUNCEMENT_BYTES && reader.int() === MAGIC ? reader.int() : 0;
}
