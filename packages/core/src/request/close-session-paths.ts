import { isTxnWithin, OpCode, parentOf, TXN_FRAME_BYTES, textBytes } from '@meerkat/protocol';

/**
 * The paths that the closeSession of a session lists: all its ephemerals or, if that txn would be too long, one of each
 * parent, as many as fit.
 *
 * Applying a closeSession deletes the listed paths and then all other ephemerals of the session, so one txn is always
 * enough. The list is needed for the replay over a fuzzy snapshot: ephemerals that are missing in the snapshot cannot
 * be deleted, and the pzxid of their parent would be too low (ZOOKEEPER-3145). One listed path per parent is enough to
 * raise it. If not even those fit, our snapshots contain an ephemeral below each of the other parents
 * (`SnapshotWriter.keep`); with a snapshot of Apache's, pzxids may be too low until a child is created or deleted.
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

/** Length field of a list and of each string in it. */
const LENGTH_BYTES = 4;
