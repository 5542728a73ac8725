/**
 * Users and their passwords in a plain file: `name:password` on each line. Lines that are empty or begin with `#` are left out.
 * The password is everything behind the first colon.
 */
export function parseUsersFile(
  text: string,
):
  | { readonly users: ReadonlyMap<string, string> }
  | { readonly fault: { readonly line: number; readonly found: string } } {
  const users = new Map<string, string>();
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const colon = line.indexOf(':');
    const [name, password] = [line.slice(0, colon), line.slice(colon + 1)];
    // The text may be a password.
    if (colon < 1 || password === '') return { fault: { line: i + 1, found: 'a line without name, ":" and password' } };
    if (users.has(name)) return { fault: { line: i + 1, found: `the user ${name} again` } };
    users.set(name, password);
  }
  return { users };
}
