import { isTxnWithin, OpCode, parentOf, TXN_FRAME_BYTES, textBytes } from '@meerkat/protocol';

/**
 * The paths that the closeSession of a session lists: all that it owns, unless that would be too long a txn; then one
 * of each parent, as many as fit.
 *
 * Whoever applies a closeSession deletes what it lists and then whatever else the session still owns, so that the
 * session ends in one txn and with all its ephemerals, also where the list is shorter. What the list is there for is
 * the replay over a fuzzy snapshot: ephemerals that the snapshot has missed cannot be deleted, and the pzxid of their
 * parent would stay behind (ZOOKEEPER-3145). One listed path below a parent is enough to raise it. Where not even that
 * fits, a snapshot of ours holds an ephemeral below each of the other parents (`SnapshotWriter.keep`), and one of
 * Apache's may leave pzxids behind until the next child comes or goes.
 *
 * @param owned the paths of all of the session's ephemerals
 * @param bytesMax of the txn, with header and digest
 */
export function pathsWithin(owned: readonly string[], bytesMax: number): readonly string[] {
  if (isTxnWithin({ type: OpCode.closeSession, paths: owned }, bytesMax)) return owned;
  const parents = new Set<string>();
  const paths: string[] = [];
  let room = bytesMax - TXN_FRAME_BYTES - LENGTH_BYTES;
  for (const path of owned) {
    const parent = parentOf(path);
    if (parents.has(parent)) continue;
    const bytes = LENGTH_BYTES + textBytes(path);
    if (bytes > room) continue;
    room -= bytes;
    parents.add(parent);
    paths.push(path);
  }
  return paths;
}

/** In front of a list, and of each text in it. */
const LENGTH_BYTES = 4;
