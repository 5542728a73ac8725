import { describe } from 'vitest';
import { testSeeds } from '../testing/seeds.ts';

describe('three servers keep their promises', () => testSeeds(5, 2, { servers: 3 }));
