/**
 * The name of a znode directly below another one, checked before anything is made: with a slash in it, it would be a znode
 * further down, which those who list the parent never see.
 *
 * @param what what it is the name of, for the message
 * @throws RangeError
 */
export function checkedName(name: string, what: string): string {
  if (name !== '' && name !== '.' && name !== '..' && !name.includes('/')) return name;
  throw new RangeError(
    `${what} cannot be "${name}": it becomes the name of a znode, which is not empty, ".", or ".." and has no slash`,
  );
}
