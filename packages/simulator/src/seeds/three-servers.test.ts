import { describe } from 'vitest';
import { testSeeds } from '../testing/seeds.ts';

describe('three servers keep their promises', () => testSeeds(5, 4, { servers: 3 }));
