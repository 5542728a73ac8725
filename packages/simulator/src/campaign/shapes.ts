import type { Shape } from '../repeat-command.ts';

/** A kind of ensemble, and how many of ten seeds run in it. */
export interface CampaignShape {
  readonly name: string;
  readonly share: number;
  readonly shape: Pick<Shape, 'servers' | 'observers' | 'spares' | 'groups'>;
}

export const CAMPAIGN_SHAPES: readonly CampaignShape[] = [
  { name: '3 servers', share: 4, shape: { servers: 3 } },
  { name: '3 servers whose members change', share: 1, shape: { servers: 3, spares: 2 } },
  { name: '3 servers, 2 observers', share: 1, shape: { servers: 3, observers: 2 } },
  { name: '5 servers', share: 1, shape: { servers: 5 } },
  { name: '5 servers, 1 observer', share: 1, shape: { servers: 5, observers: 1 } },
  { name: '4 servers in drawn groups', share: 1, shape: { servers: 4, groups: 'drawn' } },
  { name: '6 servers in 3 groups', share: 1, shape: { servers: 6, groups: 3 } },
];

/** By the last digit of the seed, so that the same seed always runs in the same ensemble. */
export function shapeOf(seed: number): CampaignShape {
  let rest = seed % 10;
  for (const candidate of CAMPAIGN_SHAPES) {
    if (rest < candidate.share) return candidate;
    rest -= candidate.share;
  }
  throw new Error('the shares of the shapes are ten');
}
