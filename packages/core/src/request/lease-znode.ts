import { type JuteWriter, writeStat } from '@meerkat/protocol';

/**
 * A znode that is in no tree: it can be read where answers are leased, see docs/leases.md, and is missing elsewhere, as it is
 * on Apache's servers. Its data are the length of the lease in milliseconds, in decimal; 0 of a server of its own. No list
 * of children shows it, and no watch is left on it.
 */
export const LEASE_PATH = '/zookeeper/lease';

/** The reply to a getData. */
export function writeLeaseZnode(leaseMs: number, writer: JuteWriter): void {
  const data = new TextEncoder().encode(String(leaseMs));
  writer.buffer(data);
  writeStat(writer, { ...NO_STAT, dataLength: data.length });
}

const NO_STAT = {
  czxid: 0,
  mzxid: 0,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 0,
  numChildren: 0,
  pzxid: 0,
};
