import type { Random } from './random.ts';
import type { Request } from './requests.ts';

/**
 * A request with some of its bytes changed, removed or added. Null when the damaged request would affect another region
 * of the tree, where it could cause an unexplained difference.
 */
export function damaged(request: Request, random: Random): Request | null {
  const body = Buffer.from(request.body);
  const how = random.weighted({ cut: 3, change: 5, length: 2, extend: 1, empty: 1 });
  const changed = damage(body, how, random);
  const text = changed.toString('latin1');
  if (['/o', '/g', '/q', '/z'].some((region) => text.includes(region))) return null;
  return { type: request.type, body: changed, text: `${request.text} (damaged: ${how})` };
}

type Damage = 'cut' | 'change' | 'length' | 'extend' | 'empty';

const ODD_LENGTHS: readonly number[] = [-1, -2, -2147483648, 2147483647, 1048576, 0, 1, 3];

function damage(body: Buffer, how: Damage, random: Random): Buffer {
  switch (how) {
    case 'cut':
      return body.subarray(0, random.below(body.length));
    case 'change':
      // Not the last byte, the watch flag of reads: damaged requests must not set watches.
      for (let i = 0; i <= random.below(3); i++) body[random.below(body.length - 1)] = random.below(256);
      return body;
    case 'length':
      body.writeInt32BE(random.pick(ODD_LENGTHS), random.oneIn(2) ? 0 : random.below(body.length - 3));
      return body;
    case 'extend':
      return Buffer.concat([body, random.bytes(1 + random.below(20))]);
    case 'empty':
      return Buffer.alloc(0);
  }
}
