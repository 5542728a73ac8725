import { OpCode, parentOf, type Txn } from '@meerkat/protocol';
import { hashOf } from '../tree/path-index.ts';

/**
 * The paths that a txn changes, including the parents of created and deleted znodes. A Bloom filter with two bits per
 * path and a false positive rate of about one in fifty.
 */
export class ChangedPaths {
  readonly #bits: Uint8Array;
  readonly #mask: number;
  /** The txn does not list all that it deletes. */
  readonly #isUnknown: boolean;
  /** The parent that was added last; '' for none. */
  #parent = '';

  /** @param deletedCount znodes that a closeSession deletes */
  constructor(txn: Txn, deletedCount: number) {
    const count = countOf(txn);
    this.#isUnknown = txn.type === OpCode.closeSession && count < deletedCount;
    this.#mask = 2 ** Math.ceil(Math.log2(BITS_PER_CHANGE * (count + 1))) - 1;
    this.#bits = new Uint8Array((this.#mask >> 3) + 1);
    if (txn.type === OpCode.closeSession) for (const path of txn.paths ?? []) this.#addWithParent(path);
    if (txn.type !== OpCode.multi) return;
    for (const part of txn.txns) {
      switch (part.type) {
        case OpCode.error:
        case OpCode.check:
          break;
        case OpCode.setData:
        case OpCode.setACL:
          this.#add(part.path);
          break;
        default:
          this.#addWithParent(part.path);
      }
    }
  }

  has(path: string): boolean {
    // A quota's usage changes with every znode below it.
    if (this.#isUnknown || path.startsWith(QUOTA_PATH)) return true;
    const hash = hashOf(path === '' ? '/' : path);
    return this.#hasBit(hash) && this.#hasBit(hash >>> HALF);
  }

  #addWithParent(path: string): void {
    this.#add(path);
    // The paths of one txn are often siblings.
    const parent = this.#parent;
    if (parent !== '' && path.lastIndexOf('/') === parent.length && path.startsWith(parent)) return;
    this.#parent = parentOf(path);
    this.#add(this.#parent);
  }

  #add(path: string): void {
    const hash = hashOf(path === '' ? '/' : path);
    this.#setBit(hash);
    this.#setBit(hash >>> HALF);
  }

  #hasBit(hash: number): boolean {
    const bit = hash & this.#mask;
    return (this.#bits[bit >> 3]! & (1 << (bit & 7))) !== 0;
  }

  #setBit(hash: number): void {
    const bit = hash & this.#mask;
    this.#bits[bit >> 3]! |= 1 << (bit & 7);
  }
}

const QUOTA_PATH = '/zookeeper/quota';

function countOf(txn: Txn): number {
  if (txn.type === OpCode.multi) return txn.txns.length;
  return txn.type === OpCode.closeSession ? (txn.paths?.length ?? 0) : 0;
}

/** Each sets four bits at most. */
const BITS_PER_CHANGE = 32;
/** Shift for the second bit of a path: it uses higher bits of the 32-bit hash. */
const HALF = 13;
