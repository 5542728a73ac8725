/** Validation and parts of znode paths (PathUtils.validatePath). */

/**
 * Returns what is wrong with a path, or null if it is a legal znode path.
 *
 * Works on UTF-16 code units as Apache's server does, so characters beyond U+FFFF are refused with the surrogates.
 */
export function describePathFault(path: string): string | null {
  const length = path.length;
  if (length === 0) return 'the path is empty';
  if (path.charCodeAt(0) !== 0x2f) return 'the path does not start with "/"';
  if (length === 1) return null;
  if (path.charCodeAt(length - 1) === 0x2f) return 'the path ends with "/"';
  let segmentStart = 1;
  for (let i = 1; i <= length; i++) {
    const c = i === length ? 0x2f : path.charCodeAt(i);
    if (c === 0x2f) {
      const segmentLength = i - segmentStart;
      if (segmentLength === 0) return `the path has an empty name at character ${i}`;
      if (path.charCodeAt(segmentStart) === 0x2e) {
        if (segmentLength === 1) return 'the path has the relative name "."';
        if (segmentLength === 2 && path.charCodeAt(segmentStart + 1) === 0x2e)
          return 'the path has the relative name ".."';
      }
      segmentStart = i + 1;
    } else if (c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0xd800 && c <= 0xf8ff) || c >= 0xfff0) {
      return `the path has the illegal character U+${c.toString(16).padStart(4, '0')} at ${i}`;
    }
  }
  return null;
}

export function isValidPath(path: string): boolean {
  return describePathFault(path) === null;
}

/** The parent of `/a/b` is `/a`; of `/a` and of a path with one leading slash only, `/`. The root has none: ''. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  if (slash > 0) return path.slice(0, slash);
  return slash === 0 && path.length > 1 ? '/' : '';
}

/** The last name of a path: `b` of `/a/b`, '' of the root. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** `/a` and `b` make `/a/b`; `/` and `b` make `/b`. */
export function joinPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}
