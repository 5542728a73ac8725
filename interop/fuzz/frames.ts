import { allFrames } from '../differential/frame-script.ts';
import type { Random } from '../differential/random.ts';
import { Op } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';

/** Numbers at which programs make mistakes. */
const EDGES: readonly number[] = [0, 1, -1, 2, 4, 0x7f, 0x80, 0xffff, 0xfffff, 0x100000, 0x7fffffff, -0x80000000];

/** Frames that the ones below are made from, without their lengths: every operation, with right and wrong fields. */
const CORPUS: readonly Buffer[] = [
  ...allFrames().map(({ type, body }) => record().int(1).int(type).raw(body).build()),
  ...['', 'x', 'username="bob",realm="zk-sasl-md5",nonce="n",nc=00000001,cnonce="c",response=0'].map((token) =>
    record().int(1).int(Op.sasl).buffer(token).build(),
  ),
  ...['digest', 'ip', 'sasl', 'x509', 'nobody'].map((scheme) =>
    record().int(-4).int(Op.auth).int(0).ustring(scheme).buffer('a:b').build(),
  ),
];

/** One frame that a client might send: as it should be, changed in some places, cut off, or nothing but noise. */
export function makeFrame(random: Random): Buffer {
  const frame = Buffer.from(random.pick(CORPUS));
  switch (random.below(8)) {
    case 0:
      return withLength(frame);
    case 1:
      return withLength(random.bytes(random.below(200)));
    case 2:
      return withLength(frame.subarray(0, random.below(frame.length + 1)));
    case 3:
      return withLength(Buffer.concat([frame, random.bytes(random.below(40))]));
    case 4:
      return withLength(putEdges(frame, random));
    case 5:
      return withLength(flipBits(frame, random));
    case 6:
      return withLength(Buffer.concat([frame.subarray(0, random.below(frame.length)), random.pick(CORPUS)]));
    default:
      return random.oneIn(8) ? lie(frame, random) : withLength(putEdges(flipBits(frame, random), random));
  }
}

function withLength(frame: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(frame.length);
  return Buffer.concat([length, frame]);
}

/** A length that is not that of the frame. */
function lie(frame: Buffer, random: Random): Buffer {
  const whole = withLength(frame);
  whole.writeInt32BE(random.oneIn(2) ? random.pick(EDGES) : frame.length + random.below(9) - 4);
  return whole;
}

function flipBits(frame: Buffer, random: Random): Buffer {
  for (let i = random.below(4); i >= 0 && frame.length > 0; i--) {
    const at = random.below(frame.length);
    frame[at] = (frame[at] ?? 0) ^ (1 << random.below(8));
  }
  return frame;
}

function putEdges(frame: Buffer, random: Random): Buffer {
  for (let i = random.below(3); i >= 0 && frame.length >= 4; i--) {
    frame.writeInt32BE(random.pick(EDGES), random.below(frame.length - 3));
  }
  return frame;
}
