/** Where the single executable begins; see `deploy/single/build.mjs`. */
import { main } from '../main.ts';
import { MEMBER_WORD } from '../up/member-word.ts';

const [first, ...rest] = process.argv.slice(2);
const ended =
  first === MEMBER_WORD
    ? import('../up/member.ts').then(({ runMember }) => runMember(rest))
    : main(process.argv.slice(2));
// As in bin/meerkat.js: a file operation that hangs must not keep the process.
void ended.then((code) => process.exit(code));
