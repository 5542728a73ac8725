import { Op } from '../harness/raw-client.ts';
import { type AclEntry, OPEN_ACL, type RecordBuilder, record } from '../harness/record-builder.ts';
import type { Script } from './comparison.ts';
import { connectStep, type StepResult } from './generator.ts';
import { name } from './requests.ts';
import type { RequestStep, Step, StepFacts } from './step.ts';

/** One field of a record, with a valid value. */
type Field =
  | { readonly kind: 'text'; readonly value: string | null }
  | { readonly kind: 'bytes'; readonly value: string | null }
  | { readonly kind: 'list'; readonly value: readonly string[] }
  | { readonly kind: 'acl'; readonly value: readonly AclEntry[] }
  | { readonly kind: 'int'; readonly value: number }
  | { readonly kind: 'long'; readonly value: bigint }
  | { readonly kind: 'bool'; readonly value: boolean };

const text = (value: string | null): Field => ({ kind: 'text', value });
const bytes = (value: string | null): Field => ({ kind: 'bytes', value });
const list = (...value: string[]): Field => ({ kind: 'list', value });
const acl: Field = { kind: 'acl', value: OPEN_ACL };
const int = (value: number): Field => ({ kind: 'int', value });
const long = (value: bigint): Field => ({ kind: 'long', value });
const bool = (value: boolean): Field => ({ kind: 'bool', value });

/** The header before each op of a multi, and the one that ends it. */
const part = (type: number): readonly Field[] => [int(type), bool(false), int(-1)];
const END: readonly Field[] = [int(-1), bool(true), int(-1)];

const PATH = '/m/a';
const CREATE = [text(PATH), bytes('data'), acl, int(0)];
const READ = [text(PATH), bool(false)];

/** A valid record for each op. None sets a watch, so that no later frame causes an event. */
const RECORDS: readonly (readonly [number, readonly Field[]])[] = [
  [Op.create, CREATE],
  [Op.create2, CREATE],
  [Op.createContainer, [text(PATH), bytes('data'), acl, int(4)]],
  [Op.createTTL, [text(PATH), bytes('data'), acl, int(5), long(3_600_000n)]],
  [Op.exists, READ],
  [Op.getData, READ],
  [Op.getChildren, READ],
  [Op.getChildren2, READ],
  [Op.getACL, [text(PATH)]],
  [Op.getAllChildrenNumber, [text(PATH)]],
  [Op.sync, [text(PATH)]],
  [Op.getEphemerals, [text('/')]],
  [Op.setData, [text(PATH), bytes('other'), int(-1)]],
  [Op.setACL, [text(PATH), acl, int(-1)]],
  [Op.delete, [text(PATH), int(-1)]],
  [
    Op.multi,
    [
      ...part(Op.check),
      text('/m'),
      int(-1),
      ...part(Op.create),
      ...CREATE,
      ...part(Op.delete),
      text(PATH),
      int(-1),
      ...END,
    ],
  ],
  [Op.multiRead, [...part(Op.getData), ...READ, ...part(Op.getChildren), text('/m'), bool(false), ...END]],
  [Op.setWatches, [long(0n), list(), list(), list()]],
  [Op.setWatches2, [long(0n), list(), list(), list(), list(), list()]],
  [Op.addWatch, [text('/never/watched'), int(2)]],
  [Op.checkWatches, [text('/never/watched'), int(3)]],
  [Op.removeWatches, [text('/never/watched'), int(3)]],
  [Op.reconfig, [text(null), text(null), text(null), long(-1n)]],
  [Op.auth, [int(0), text('digest'), bytes('ann:x')]],
  [Op.sasl, [bytes('')]],
  [Op.ping, []],
  [Op.whoAmI, []],
];

/** Wrong lengths of strings, buffers and vectors. */
const LENGTHS: readonly number[] = [-2, -2147483648, 2147483647, 1_048_576, 3_000_000, 100, 1];
const INTS: readonly number[] = [0, 1, -1, -2, 2147483647, -2147483648];

/** Index of the multi's field with the flags of its create. */
const FLAGS_IN_MULTI = 11;

export interface Frame {
  readonly type: number;
  readonly body: Buffer;
  readonly text: string;
  readonly xid?: number;
  readonly facts?: StepFacts;
}

/** Other values of a field: a description, and the bytes. */
function* otherValues(field: Field): Iterable<readonly [string, Buffer]> {
  const made = (write: (builder: RecordBuilder) => RecordBuilder): Buffer => write(record()).build();
  switch (field.kind) {
    case 'text':
    case 'bytes':
      yield ['null', made((b) => b.int(-1))];
      yield ['empty', made((b) => b.int(0))];
      if (field.kind === 'text') yield ['no UTF-8', made((b) => b.buffer(Buffer.from([0xff, 0xc0, 0x80, 0xed, 0xa0])))];
      break;
    case 'list':
      yield ['null', made((b) => b.int(-1))];
      yield ['with a null', made((b) => b.strings([null]))];
      yield ['with an empty text', made((b) => b.strings(['']))];
      break;
    case 'acl':
      yield ['null', made((b) => b.int(-1))];
      yield ['empty', made((b) => b.int(0))];
      yield ['without a scheme', made((b) => b.acls([{ perms: 31, scheme: null, id: 'x' }]))];
      yield ['without an id', made((b) => b.acls([{ perms: 31, scheme: 'world', id: null }]))];
      yield ['with an empty scheme', made((b) => b.acls([{ perms: 31, scheme: '', id: '' }]))];
      break;
    case 'int':
      for (const value of INTS) yield [String(value), made((b) => b.int(value))];
      return;
    case 'long':
      for (const value of [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]) yield [String(value), made((b) => b.long(value))];
      return;
    case 'bool':
      // Not true, which would set a watch.
      return;
  }
  for (const length of LENGTHS) yield [`of length ${length}`, made((b) => b.int(length))];
}

function bytesOf(field: Field): Buffer {
  const builder = record();
  switch (field.kind) {
    case 'text':
      return builder.ustring(field.value).build();
    case 'bytes':
      return builder.buffer(field.value).build();
    case 'list':
      return builder.strings(field.value).build();
    case 'acl':
      return builder.acls(field.value).build();
    case 'int':
      return builder.int(field.value).build();
    case 'long':
      return builder.long(field.value).build();
    case 'bool':
      return builder.bool(field.value).build();
  }
}

/** All variants of one op with a wrong field. */
function* framesOf(type: number, fields: readonly Field[]): Iterable<Frame> {
  const good = fields.map(bytesOf);
  const whole = Buffer.concat(good);
  const frame = (what: string, body: Buffer): Frame => ({ type, body, text: `${name(type)}, ${what}` });
  yield frame('as it should be', whole);
  for (const [i, field] of fields.entries()) {
    const title = `field ${i + 1} (${field.kind})`;
    const before = good.slice(0, i);
    const after = good.slice(i + 1);
    const own = good[i] ?? Buffer.alloc(0);
    for (const [what, bytes] of otherValues(field)) {
      if (isTaboo(type, field, i, what)) continue;
      const areFlags = type === Op.multi && i === FLAGS_IN_MULTI;
      const facts = areFlags ? { subOps: [{ type: Op.create, flags: bytes.readInt32BE() }] } : {};
      yield { ...frame(`${title} ${what}`, Buffer.concat([...before, bytes, ...after])), facts };
    }
    yield frame(`cut before ${title}`, Buffer.concat(before));
    yield frame(`cut within ${title}`, Buffer.concat([...before, own.subarray(0, own.length - 1)]));
  }
  for (const length of [1, 4, 100]) {
    yield frame(`${length} bytes too many`, Buffer.concat([whole, Buffer.alloc(length, 0xff)]));
  }
}

/** Requests that break Apache's server; `known-differences.ts` describes how. */
function isTaboo(type: number, { kind }: Field, at: number, what: string): boolean {
  if (type === Op.multi) return kind === 'text' && what === 'null';
  return type === Op.setWatches2 && at >= 4 && what === 'with a null';
}

/** Each op code with the records of other ops. */
function* mixedFrames(): Iterable<Frame> {
  for (const [type] of RECORDS) {
    for (const [other, fields] of RECORDS) {
      if (type === other) continue;
      yield { type, body: Buffer.concat(fields.map(bytesOf)), text: `${name(type)} with the record of ${name(other)}` };
    }
  }
}

/** Op codes that no client sends, and xids with a special meaning. */
function* oddFrames(): Iterable<Frame> {
  const body = Buffer.concat(READ.map(bytesOf));
  for (const type of [0, -1, -2, -12, 10, 23, 99, 108, 1000, 2147483647, -2147483648]) {
    yield { type, body, text: `op code ${type}` };
  }
  // Not -1, which marks events.
  for (const xid of [0, -2, -3, -4, -8, 2147483647, -2147483648]) {
    for (const type of [Op.exists, Op.setData, Op.ping, Op.whoAmI, Op.auth, Op.sasl, Op.sync]) {
      const fields = RECORDS.find(([op]) => op === type)?.[1] ?? [];
      yield { type, body: Buffer.concat(fields.map(bytesOf)), text: `${name(type)} with xid ${xid}`, xid };
    }
  }
  yield { type: Op.closeSession, body, text: 'closeSession with a record' };
}

/** Sends frames one at a time, reconnecting as needed. */
export class FrameScript implements Script {
  readonly #frames: Iterator<Frame>;
  readonly #opening: Step[];
  #isConnected = false;

  constructor(frames: Iterable<Frame>) {
    this.#frames = frames[Symbol.iterator]();
    this.#opening = ['/m', PATH].map((path) => {
      const body = record().ustring(path).buffer('data').acls(OPEN_ACL).int(0).build();
      return stepOf({ type: Op.create, body, text: `create ${path}` });
    });
  }

  next(): Step | null {
    if (!this.#isConnected) return connectStep(0, { session: 'new' });
    const opening = this.#opening.shift();
    if (opening !== undefined) return opening;
    const { value, done } = this.#frames.next();
    return done === true ? null : stepOf(value);
  }

  learn(_step: Step, result: StepResult): void {
    this.#isConnected = !result.isClosed;
  }

  replay(): string {
    return 'npx vitest run interop/frames';
  }
}

/** Every op with every wrong value of every field. */
export function allFrames(): readonly Frame[] {
  const wrong = RECORDS.flatMap(([type, fields]) => [...framesOf(type, fields)]);
  return [...wrong, ...mixedFrames(), ...oddFrames()];
}

function stepOf({ type, body, text, xid, facts }: Frame): RequestStep {
  return {
    kind: 'request',
    slot: 0,
    type,
    xid: xid ?? null,
    body,
    relativeZxid: null,
    text,
    facts: { isDamaged: true, ...facts },
  };
}
