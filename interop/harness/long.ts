import { env } from 'node:process';

/** True in `npm run test:long`, where tests may run more iterations. */
export const isLong: boolean = env['TESTS'] === 'long';
