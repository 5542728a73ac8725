import { type JuteWriter, writeStat } from '@meerkat/protocol';

/**
 * A virtual znode, not part of the tree. It can be read where answers are leased (docs/leases.md) and does not exist
 * elsewhere, such as on Apache's servers. Its data is the length of the lease in milliseconds, in decimal; 0 on a
 * standalone server. It is not listed as a child, and watches cannot be set on it.
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
