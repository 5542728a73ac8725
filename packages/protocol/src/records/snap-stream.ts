/**
 * The snapshot that follows a SNAP packet, without framing (LearnerHandler, Learner).
 *
 *     stream    := sessions acls znodes "/" signature
 *     signature := ustring "BenWasHere"                                                     (14 bytes)
 *
 * Everything before the signature is the body of a snapshot file, without the file's header, checksum and digest. Its
 * reader knows where the body ends; the signature there confirms that both sides agree. The next packet follows at
 * once.
 */
import type { JuteWriter } from '../jute/writer.ts';

/** Bytes of the signature, its length included. */
export const SNAP_SIGNATURE_BYTES = 14;

export function writeSnapSignature(writer: JuteWriter): void {
  writer.raw(SIGNATURE);
}

/** Whether the signature is at `at`, where SNAP_SIGNATURE_BYTES have arrived. */
export function isSnapSignatureAt(bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < SNAP_SIGNATURE_BYTES; i++) if (bytes[at + i] !== SIGNATURE[i]) return false;
  return true;
}

/** int 10, "BenWasHere" */
const SIGNATURE: Uint8Array = Uint8Array.from([0, 0, 0, 10, ...new TextEncoder().encode('BenWasHere')]);
