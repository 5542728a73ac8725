import { describe } from 'vitest';
import { testSureClients } from '../testing/sure-clients.ts';

describe('no session ends while its client can be sure that it lives', () => testSureClients(6, 8));
