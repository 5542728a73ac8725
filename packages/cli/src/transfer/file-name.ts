/*
 * Names of znodes as names of directories. What a file system cannot hold or takes for something else is written as % and
 * two hexadecimal digits:
 *
 *     a:b*c     a%3Ab%2Ac    characters that some file systems refuse
 *     50%       50%25
 *     _znode    %5Fznode     names that begin with _ are ours
 *     end.      end%2E       some file systems drop dots and spaces at the end
 */
const UNSAFE = /[%<>:"\\|?*]|^_|[. ]$/g;

export function fileNameOf(name: string): string {
  return name.replace(UNSAFE, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  });
}

/** @returns null when no znode can be meant */
export function znodeNameOf(fileName: string): string | null {
  try {
    return decodeURIComponent(fileName);
  } catch {
    return null;
  }
}
