/**
 * What a znode is, apart from its name and data (EphemeralType).
 *
 * The persisted owner, a long, encodes the kind: 0 persistent; 0x8000000000000000 a container; 0xFF in the top byte,
 * where extended types are enabled, a TTL znode with the ttl in the low 40 bits; anything else is the session of an
 * ephemeral. 3.5.3 marked a TTL znode by the highest bit alone. Clients see the session of an ephemeral and 0 for all
 * others.
 */
export const ZnodeKind = { persistent: 0, ephemeral: 1, container: 2, ttl: 3 } as const;
export type ZnodeKind = (typeof ZnodeKind)[keyof typeof ZnodeKind];

/** Persisted owner of every container, as a signed long. */
export const CONTAINER_OWNER: bigint = -0x8000000000000000n;

/** Longest ttl in milliseconds. */
export const TTL_MS_MAX: number = 0xffffffffff;

/** High half of the persisted owner of a container, and of a TTL znode without the upper byte of its ttl. */
export const CONTAINER_OWNER_HIGH: number = 0x80000000 | 0;
export const TTL_OWNER_HIGH: number = 0xff000000 | 0;

/**
 * The kind that a persisted owner encodes, from its two signed halves.
 *
 * @param options with `emulate353TtlZnodes` no session has the highest bit
 * @returns null for an owner that is invalid where extended types are enabled: 0xFF with a feature id that is not 0
 */
export function kindOfOwner(
  high: number,
  low: number,
  options: { readonly extendedTypesEnabled: boolean; readonly emulate353TtlZnodes: boolean },
): ZnodeKind | null {
  if (high === 0 && low === 0) return ZnodeKind.persistent;
  if (high === CONTAINER_OWNER_HIGH && low === 0) return ZnodeKind.container;
  if (!options.extendedTypesEnabled) return ZnodeKind.ephemeral;
  if (options.emulate353TtlZnodes && high < 0) return ZnodeKind.ttl;
  if (high >>> 24 !== 0xff) return ZnodeKind.ephemeral;
  return ((high >>> 8) & 0xffff) === 0 ? ZnodeKind.ttl : null;
}

/** Whether the owner of a TTL znode is not in the encoding used since 3.5.4. */
export function isOwnerOf353(high: number): boolean {
  return high >>> 8 !== 0xff0000;
}

/** The ttl in milliseconds in the owner of a TTL znode. */
export function ttlOfOwner(high: number, low: number): number {
  return (high & 0xff) * 0x100000000 + (low >>> 0);
}

/** The same, from a signed long. */
export function ttlOfOwnerLong(owner: bigint): number {
  return Number(owner & BigInt(TTL_MS_MAX));
}

/** Persisted owner of a TTL znode, as a signed long. */
export function ownerOfTtl(ttlMs: number): bigint {
  return BigInt.asIntN(64, 0xff00000000000000n | BigInt(ttlMs));
}

/**
 * Whether a container without children may be deleted (ContainerManager).
 *
 * @param childrenEver number of children ever created in it
 * @param ageMs since its data was written
 * @param neverUsedMs age at which a container that never had a child is deleted; 0 = never
 */
export function isContainerOver(childrenEver: number, ageMs: number, neverUsedMs: number): boolean {
  return childrenEver !== 0 || (neverUsedMs !== 0 && ageMs > neverUsedMs);
}

/** The same for a TTL znode. */
export function isTtlOver(ttlMs: number, ageMs: number): boolean {
  return ttlMs !== 0 && ageMs > ttlMs;
}
