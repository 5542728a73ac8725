/**
 * Whether this process is the single executable that `npm run build:single` makes: the program stands inside the executable,
 * with no files beside it.
 */
export function isSingleFile(): boolean {
  return sea()?.isSea() === true;
}

/**
 * What a thread of the executable evaluates.
 *
 * @param name one of the entries in `deploy/single/build.mjs`
 * @throws Node's error when it does not exist, or when this is not the single executable
 */
export function threadScript(name: string): string {
  const found = sea();
  if (found === undefined) throw new Error(`cannot run ${name}: this Node.js, ${process.version}, has no node:sea`);
  return `${found.getAsset('loader', 'utf8')}load('./${name}.cjs');`;
}

/** Node.js before 20.12 has none; it also makes no single executables with files. */
function sea(): typeof import('node:sea') | undefined {
  return process.getBuiltinModule('node:sea');
}
