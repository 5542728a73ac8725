import { describe } from 'vitest';
import { testSeeds } from '../testing/seeds.ts';

describe('three servers keep their promises', () => testSeeds(9, 3, { servers: 3 }));
