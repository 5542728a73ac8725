import { describe } from 'vitest';
import { testSeeds } from '../testing/seeds.ts';

describe('five servers and an observer keep their promises', () => testSeeds(101, 1, { servers: 5, observers: 1 }));
