import { Op } from '../harness/raw-client.ts';
import type { AclEntry } from '../harness/record-builder.ts';
import { RecordReader } from '../harness/record-reader.ts';
import { SLOTS } from './slots.ts';
import type { Step } from './step.ts';
import { digestId } from './vocabulary.ts';

const READ = 1;
const REPLY_HEADER_BYTES = 16;

/**
 * READ permissions in the guarded region: ACLs come from the server's getACL, identities from the auth requests. Newer
 * releases check READ where 3.8.0 does not; this decides whether a refusal is correct.
 */
export class Guard {
  /** The ACL of a znode, or the last one of a deleted znode. */
  readonly #acls = new Map<string, readonly AclEntry[]>();
  readonly #identities: Set<string>[] = Array.from({ length: SLOTS + 1 }, () => new Set());

  /** Learns an ACL from the raw reply to getACL. */
  learnAcl(path: string, replyHex: string): void {
    const reader = new RecordReader(Buffer.from(replyHex, 'hex'), REPLY_HEADER_BYTES);
    this.#acls.set(path, reader.acls() ?? []);
  }

  /** Learns identities from an executed step. */
  learnIdentity(step: Step, error: number): void {
    const identities = this.#identities[step.slot];
    if (identities === undefined) return;
    if (step.kind === 'connect') identities.clear();
    if (step.kind !== 'request' || step.type !== Op.auth || error !== 0) return;
    const auth = step.facts.auth;
    if (auth?.scheme !== 'digest' || auth.credentials === null) return;
    identities.add(auth.credentials === 'super:test' ? 'super' : `digest:${digestId(auth.credentials)}`);
  }

  canRead(slot: number, path: string): boolean {
    const identities = this.#identities[slot];
    const acl = this.#acls.get(path);
    if (acl === undefined || acl.length === 0 || identities === undefined || identities.has('super')) return true;
    return acl.some(
      ({ perms, scheme, id }) =>
        (perms & READ) !== 0 &&
        (scheme === 'world' || identities.has(`${scheme}:${id}`) || (scheme === 'ip' && isLoopback(id ?? ''))),
    );
  }
}

/** Whether `address` or `address/bits` contains 127.0.0.1. */
function isLoopback(id: string): boolean {
  const [address = '', bits = '32'] = id.split('/');
  const numberOf = (text: string): number => text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - Number(bits));
  return Math.floor(numberOf(address) / size) === Math.floor(numberOf('127.0.0.1') / size);
}
