import type { MultiPart, OperationRequest } from './history.ts';
import type { SeededRandom } from './seeded-random.ts';

const QUOTA_ROOT = '/zookeeper/quota';

/** Where the quota of a path stands: parents first. */
function quotaOf(path: string): { readonly top: string; readonly limits: string; readonly stats: string } {
  const top = QUOTA_ROOT + path;
  return { top, limits: `${top}/zookeeper_limits`, stats: `${top}/zookeeper_stats` };
}

/** Where the quotas of a path, and of those below it, stand. */
export function quotaPathOf(path: string): string {
  return quotaOf(path).top;
}

export function limitsPathOf(path: string): string {
  return quotaOf(path).limits;
}

/** Sets up, changes or takes down a quota; what is there already, or is not, refuses the wrong ones. */
export function drawQuotaWrite(random: SeededRandom, path: string): OperationRequest {
  const { top, limits, stats } = quotaOf(path);
  const create = (at: string, data: string): MultiPart => ({
    op: 'create',
    path: at,
    data,
    mode: 'persistent',
    isSequential: false,
  });
  const dice = random.fraction();
  if (dice < 0.45) {
    // The service counts usage itself, whatever is written here.
    return {
      op: 'multi',
      parts: [create(top, ''), create(limits, drawLimits(random)), create(stats, 'count=0,bytes=0')],
    };
  }
  if (dice < 0.8) return { op: 'set', path: limits, data: drawLimits(random), version: -1 };
  return { op: 'multi', parts: [stats, limits, top].map((at) => ({ op: 'delete', path: at, version: -1 }) as const) };
}

/** Hard limits, which are soon reached, soft ones, or none. */
function drawLimits(random: SeededRandom): string {
  const soft = random.chance(0.3) ? 'count=1,bytes=1' : 'count=-1,bytes=-1';
  const hard: string[] = [];
  if (random.chance(0.5)) hard.push(`;byteHardLimit=${random.between(0, 20)}`);
  if (random.chance(0.5)) hard.push(`;countHardLimit=${random.between(0, 3)}`);
  return hard.length === 0 ? soft : `${soft}=${hard.join('')}`;
}
