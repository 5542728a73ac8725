import { env } from 'node:process';

/** True in `npm run test:long`, where a test may do more of the same. */
export const isLong: boolean = env['TESTS'] === 'long';
