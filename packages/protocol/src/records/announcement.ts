/**
 * What our servers tell each other that Apache's do not know of: behind the last field that those read, where they look
 * at nothing.
 *
 *     announcement := int 0x4d4b4154 ("MKAT"), int announces      a sum of Announcement; left out when it is 0
 *
 * It ends a notification of the election, the data of FOLLOWERINFO and OBSERVERINFO, and those of LEADERINFO.
 */
import type { JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';

/** Bits that mean something; servers of other releases may set more. Bits 8 to 29 hold a number, see `leaseMsOf`. */
export const Announcement = {
  /** Decides an election without waiting once every voter that can be reached votes alike. */
  settlesEarly: 1,
  /** Understands HANDOVER. */
  takesHandOver: 2,
  /**
   * A learner whose log is what it says: durable up to the zxid that it names, and cut durably and exactly by TRUNC. An
   * Apache server's may end in txns that were never synced, and what it was told to cut may come back from a snapshot
   * (ZOOKEEPER-4646, 1549).
   */
  keepsLog: 4,
  /** Follows no leader of an older epoch than its own history, but goes on standing for election. */
  outlastsOlderEpochs: 8,
} as const;
export type Announcement = (typeof Announcement)[keyof typeof Announcement];

/** The longest lease that an announcement can name, in milliseconds: more than an hour. */
export const LEASE_MS_MAX: number = 2 ** 22 - 1;
const LEASE_SHIFT = 8;

/** What a server adds to its announcement whose answers are leased, see docs/leases.md. @param leaseMs 0: they are not */
export function announcedLease(leaseMs: number): number {
  return leaseMs << LEASE_SHIFT;
}

/** Milliseconds; 0 of a server whose answers are not leased. */
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

/** Reads what is left of a record. @returns 0 when that is nothing, or something else */
export function readAnnouncement(reader: JuteReader): number {
  return reader.remaining >= ANNOUNCEMENT_BYTES && reader.int() === MAGIC ? reader.int() : 0;
}
