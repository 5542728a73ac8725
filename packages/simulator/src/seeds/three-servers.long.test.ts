import { describe } from 'vitest';
import { testSeeds } from '../testing/seeds.ts';

describe('three servers keep their promises', () => testSeeds(7, 5, { servers: 3 }));
