// `node deploy/tools/check-packages.mjs <package.tgz>…`: runs publint and attw ("are the types wrong?") on packed
// packages; prints one line per problem, and exits with 1 if there is any. Both in one process, because each loads a
// compiler.
import { readFileSync } from 'node:fs';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

/** Resolution modes that ESM-only packages do not support. */
const NOT_OURS = ['node10', 'node16-cjs'];

for (const file of process.argv.slice(2)) {
  const bytes = readFileSync(file);
  const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
  for (const message of messages) report(pkg.name, formatMessage(message, pkg, { color: false }));
  const { types, problems = [] } = await checkPackage(createPackageFromTarballData(new Uint8Array(tarball)));
  if (types === false) report(pkg.name, 'has no types');
  for (const problem of problems)
    if (!NOT_OURS.includes(problem.resolutionKind)) report(pkg.name, JSON.stringify(problem));
}

function report(name, fault) {
  console.log(`${name}: ${fault}`);
  process.exitCode = 1;
}
