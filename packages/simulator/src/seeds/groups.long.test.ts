import { describe } from 'vitest';
import { testSeeds } from '../testing/seeds.ts';

describe('groups of servers keep their promises', () => {
  describe('nine in three groups', () => testSeeds(201, 1, { servers: 9, groups: 3, minutes: 0.5 }));
  describe('four in groups that chance draws', () => testSeeds(211, 1, { servers: 4, groups: 'drawn' }));
  describe('five in groups that chance draws, and two observers', () =>
    testSeeds(221, 1, { servers: 5, observers: 2, groups: 'drawn' }));
});
