/**
 * The name of a direct child, checked before anything is created: with a slash in it, the znode would be further down,
 * where a list of the parent does not show it.
 *
 * @param what what it names, for the message
 * @throws RangeError
 */
export function checkedName(name: string, what: string): string {
  if (name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !hasIllegalCharacter(name)) return name;
  throw new RangeError(
    `${what} cannot be ${JSON.stringify(name)}: it becomes the name of a znode, which is not empty, ".", or ".." and has no ` +
      'slash, no control character and none beyond U+D7FF but U+F900 to U+FFEF',
  );
}

/** Servers check UTF-16 code units, so that characters beyond U+FFFF are refused as surrogates. */
function hasIllegalCharacter(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const c = name.charCodeAt(i);
    if (c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0xd800 && c <= 0xf8ff) || c >= 0xfff0) return true;
  }
  return false;
}
