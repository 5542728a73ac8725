import { type MultiSubTxn, OpCode, type Txn } from '@meerkat/protocol';
import { Histogram } from './histogram.ts';

/** Bytes that clients have read from and written to one namespace: the subtree of a child of the root. */
export class NamespaceMeter {
  /** `/app`. */
  readonly top: string;
  readonly name: string;
  readonly read: Histogram = new Histogram();
  readonly written: Histogram = new Histogram();

  constructor(name: string) {
    this.top = `/${name}`;
    this.name = name;
  }

  has(path: string): boolean {
    const { top } = this;
    return path.startsWith(top) && (path.length === top.length || path.charCodeAt(top.length) === SLASH);
  }
}

/**
 * Bytes read and written per namespace. Requests come in runs, mostly for the namespace of the previous request, which
 * then needs no lookup. Clients choose the names, so there are `NAMESPACES_MAX`; all others are counted as `_other`.
 */
export class NamespaceMeters {
  readonly #byName = new Map<string, NamespaceMeter>();
  #last: NamespaceMeter = NOWHERE;
  /** A run of reads of equal size in the namespace of the last one; counted together when the run ends. */
  #runBytes = 0;
  #runLength = 0;

  /** @param bytes size of what was read, without path and Stat */
  onRead(path: string, bytes: number): void {
    const all = path.length + bytes + STAT_BYTES;
    if (all === this.#runBytes && this.#last.has(path)) {
      this.#runLength++;
      return;
    }
    this.#endRun();
    const meter = this.#last.has(path) ? this.#last : this.#find(path);
    if (meter !== this.#last) {
      if (meter !== NOWHERE) meter.read.add(all);
      return;
    }
    this.#runBytes = all;
    this.#runLength = 1;
  }

  #endRun(): void {
    if (this.#runLength > 0 && this.#last !== NOWHERE) this.#last.read.add(this.#runBytes, this.#runLength);
    this.#runLength = 0;
    this.#runBytes = 0;
  }

  /** A txn has been applied. */
  onTxn(txn: Txn): void {
    if (txn.type !== OpCode.multi) {
      this.#onPart(txn);
      return;
    }
    for (const part of txn.txns) this.#onPart(part);
  }

  values(): Iterable<NamespaceMeter> {
    this.#endRun();
    return this.#byName.values();
  }

  #onPart(txn: Exclude<Txn, { readonly type: typeof OpCode.multi }> | MultiSubTxn): void {
    switch (txn.type) {
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL:
      case OpCode.setData:
        this.#onWritten(txn.path, txn.data?.length ?? 0);
        return;
      case OpCode.delete:
      case OpCode.deleteContainer:
        this.#onWritten(txn.path, 0);
        return;
      default:
        return;
    }
  }

  #onWritten(path: string, bytes: number): void {
    const meter = this.#last.has(path) ? this.#last : this.#find(path);
    if (meter !== NOWHERE) meter.written.add(path.length + bytes);
  }

  #find(path: string): NamespaceMeter {
    // The run counted so far belongs to the previous namespace.
    this.#endRun();
    if (path.length < 2) return NOWHERE;
    const end = path.indexOf('/', 1);
    const name = end < 0 ? path.slice(1) : path.slice(1, end);
    const known = this.#byName.get(name);
    if (known !== undefined) {
      this.#last = known;
      return known;
    }
    if (this.#byName.size >= NAMESPACES_MAX) return this.#others();
    const made = new NamespaceMeter(name);
    this.#byName.set(name, made);
    this.#last = made;
    return made;
  }

  #others(): NamespaceMeter {
    const known = this.#byName.get(OTHERS);
    if (known !== undefined) return known;
    const made = new NamespaceMeter(OTHERS);
    this.#byName.set(OTHERS, made);
    return made;
  }
}

const OTHERS = '_other';
const NAMESPACES_MAX = 100;
/** ZooKeeper adds this for the Stat in each read. */
const STAT_BYTES = 68;
const SLASH = 0x2f;
const NOWHERE = new NamespaceMeter('\0');
