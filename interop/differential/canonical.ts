import { Op } from '../harness/raw-client.ts';
import type { AclEntry } from '../harness/record-builder.ts';
import { RecordReader, type Stat } from '../harness/record-reader.ts';
import { aclText } from './step.ts';

/** Maps server-specific values in replies to comparable ones. */
export interface Names {
  /** Maps the server's zxid to the script's numbering. */
  canonicalZxid(zxid: bigint): bigint;
  /** A name for a session id: the same for the same session on both servers. */
  sessionName(id: bigint): string;
}

/**
 * A reply's body in readable and comparable form. `times` are its ctimes and mtimes, in order: the two servers have the
 * same clock but get the request at different times.
 */
export interface CanonicalBody {
  readonly text: string;
  readonly times: readonly bigint[];
}

const EMPTY: CanonicalBody = { text: '', times: [] };

/**
 * Reads the body of a successful reply. Trailing or missing bytes are part of the text, so that they count as a
 * difference.
 */
export function canonicalBody(type: number, body: Buffer, names: Names): CanonicalBody {
  if (body.length === 0) return EMPTY;
  const reader = new RecordReader(body);
  const canonical = new Canonical(reader, names);
  try {
    canonical.readBody(type);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { text: `undecodable ${body.toString('hex')}`, times: [] };
  }
  const left = reader.rest();
  const rest = left.length === 0 ? '' : ` and ${left.length} more bytes ${left.toString('hex')}`;
  return { text: canonical.parts.join(' ') + rest, times: canonical.times };
}

class Canonical {
  readonly parts: string[] = [];
  readonly times: bigint[] = [];
  readonly #reader: RecordReader;
  readonly #names: Names;

  constructor(reader: RecordReader, names: Names) {
    this.#reader = reader;
    this.#names = names;
  }

  readBody(type: number): void {
    const reader = this.#reader;
    switch (type) {
      case Op.create:
      case Op.sync:
        this.parts.push(text(reader.ustring()));
        break;
      case Op.create2:
      case Op.createContainer:
      case Op.createTTL:
        this.parts.push(text(reader.ustring()));
        this.#stat();
        break;
      case Op.exists:
      case Op.setData:
      case Op.setACL:
        this.#stat();
        break;
      case Op.getData:
        this.#data();
        this.#stat();
        break;
      case Op.getACL:
        this.parts.push(aclText(sortedIdentities(reader.acls())));
        this.#stat();
        break;
      case Op.getChildren:
      case Op.getEphemerals:
        this.#set();
        break;
      case Op.getChildren2:
        this.#set();
        this.#stat();
        break;
      case Op.multi:
      case Op.multiRead:
        this.#results();
        break;
      case Op.getAllChildrenNumber:
      case Op.addWatch:
        this.parts.push(String(reader.int()));
        break;
      case Op.whoAmI:
        this.parts.push(...(reader.vector((item) => `${item.ustring()}:${item.ustring()}`) ?? ['null']).sort());
        break;
      case Op.sasl:
        this.#data();
        break;
      default:
        this.parts.push(reader.rest().toString('hex'));
    }
  }

  #data(): void {
    const data = this.#reader.buffer();
    this.parts.push(data === null ? 'null' : `${data.length}B:${data.toString('hex')}`);
  }

  /** Unordered names. */
  #set(): void {
    const items = this.#reader.strings();
    this.parts.push(items === null ? 'null' : `{${items.map(text).sort().join(', ')}}`);
  }

  #stat(): void {
    const stat = this.#reader.stat();
    this.parts.push(this.#statText(stat));
    this.times.push(stat.ctime, stat.mtime);
  }

  #statText(stat: Stat): string {
    const zxid = (raw: bigint): string => this.#names.canonicalZxid(raw).toString();
    return (
      `(czxid ${zxid(stat.czxid)} mzxid ${zxid(stat.mzxid)} pzxid ${zxid(stat.pzxid)} version ${stat.version} ` +
      `cversion ${stat.cversion} aversion ${stat.aversion} owner ${this.#names.sessionName(stat.ephemeralOwner)} ` +
      `dataLength ${stat.dataLength} numChildren ${stat.numChildren})`
    );
  }

  #results(): void {
    const reader = this.#reader;
    for (;;) {
      const type = reader.int();
      const done = reader.bool();
      const error = reader.int();
      this.parts.push(`<${type}${done ? ' done' : ''} ${error}`);
      if (done) {
        this.parts.push('>');
        return;
      }
      if (type === -1) this.parts.push(String(reader.int()));
      else if (type !== Op.delete && type !== Op.check) this.readBody(type);
      this.parts.push('>');
    }
  }
}

/** Entries that replace `auth` are unordered: adjacent digest entries with the same permissions are sorted. */
function sortedIdentities(acl: readonly AclEntry[] | null): readonly AclEntry[] | null {
  const sorted = [...(acl ?? [])];
  for (let start = 0; start < sorted.length; start++) {
    const first = sorted[start];
    let end = start + 1;
    while (first?.scheme === 'digest' && sorted[end]?.scheme === 'digest' && sorted[end]?.perms === first.perms)
      end += 1;
    const run = sorted.slice(start, end).sort((a, b) => ((a.id ?? '') < (b.id ?? '') ? -1 : 1));
    sorted.splice(start, run.length, ...run);
    start = end - 1;
  }
  return acl === null ? null : sorted;
}

function text(value: string | null): string {
  return value === null ? 'null' : JSON.stringify(value);
}
