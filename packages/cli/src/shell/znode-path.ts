/**
 * The absolute path of what was typed, below the current znode unless it begins with "/". `.` is the znode itself and
 * `..` its parent, as in a file system: no znode can have these names. A "/" at the end is of no account.
 */
export function resolvePath(current: string, typed: string): string {
  const names: string[] = [];
  for (const name of (typed.startsWith('/') ? typed : `${current}/${typed}`).split('/')) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  return `/${names.join('/')}`;
}
