/** `node member-main.js <zoo.cfg> <ids to be cut off from, separated by commas>` */
import { runMember } from './member.ts';

// As in bin/meerkat.js: a file operation that hangs must not keep the process.
process.exit(await runMember(process.argv.slice(2)));
