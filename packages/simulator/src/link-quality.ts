/** How fast and how smoothly bytes travel from one host to another. */
export interface LinkQuality {
  readonly delayMinMs: number;
  readonly delayMaxMs: number;
  /** Probability that what is written at once arrives in two pieces. */
  readonly splitChance: number;
  /** Probability that it is joined to what is still on its way. */
  readonly mergeChance: number;
  /** Probability that its first bytes arrive one by one. Default 0. */
  readonly dribbleChance?: number | undefined;
  /** Bytes that pass in a millisecond. Default: no limit. */
  readonly bytesPerMs?: number | undefined;
}

export const DEFAULT_LINK: LinkQuality = {
  delayMinMs: 0.1,
  delayMaxMs: 1,
  splitChance: 0.03,
  mergeChance: 0.05,
  dribbleChance: 0.002,
};
