/**
 * What a znode lives as long as. A service tells its clients only of ephemerals: containers and znodes with a time to live
 * look persistent from outside. A file may say so all the same.
 */
export type ZnodeKind = 'persistent' | 'ephemeral' | 'container' | 'ttl';

/** The owner field of logs and snapshots encodes the kind of a znode; see docs/protocol. */
export function kindOfOwner(owner: bigint): ZnodeKind {
  const bits = BigInt.asUintN(64, owner);
  if (bits === 0n) return 'persistent';
  if (bits === CONTAINER_OWNER) return 'container';
  return bits >> 40n === TTL_MARK ? 'ttl' : 'ephemeral';
}

/** Milliseconds; of the owner of a znode of the kind `ttl`. */
export function ttlOfOwner(owner: bigint): number {
  return Number(BigInt.asUintN(40, owner));
}

const CONTAINER_OWNER = 1n << 63n;
/** The upper 24 bits. */
const TTL_MARK = 0xff0000n;
