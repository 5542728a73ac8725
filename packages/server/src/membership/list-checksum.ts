import { crc32 } from 'node:zlib';
import { formatZxid, type Zxid } from '@meerkat/protocol';

/**
 * The first line of a file of members that a server has written. Lines that are missing are noticed by it: a shorter list is a list, too.
 * To Apache's servers it is a comment.
 *
 *     # version 100000007, crc32 1a2b3c4d of the lines below
 */
const CHECKED = /^# version ([0-9a-f]{1,16}), crc32 ([0-9a-f]{8}) of the lines below\n([\s\S]*)$/;
/** Either is enough to know the line that is damaged itself. */
const TRACES = /crc32|of the lines below/;

const COPY = 'Copy the list of a running member (`config` in a client) into it';

/** What to do about a list that cannot be used. */
export const LIST_EXPECTED: string = `a file that lists the members, with lines such as server.1=host:2888:3888;2181. ${COPY}`;

export function withChecksum(lines: string, version: Zxid): string {
  return `# version ${formatZxid(version)}, crc32 ${checksumOf(lines)} of the lines below\n${lines}`;
}

/**
 * @param version as the name of the file says it; 0 when it says none
 * @returns what is wrong with the file, beginning with its first line; null also where it has no checksum: Apache's servers and people write none
 */
export function findListDamage(
  text: string,
  version: Zxid,
): { readonly found: string; readonly expected: string } | null {
  const checked = CHECKED.exec(text);
  if (checked === null) {
    if (!TRACES.test(text)) return null;
    const [line = ''] = text.split('\n');
    return {
      found: line,
      expected: `# version …, crc32 … of the lines below: the file was damaged. ${COPY}, without this line`,
    };
  }
  const [, written = '', sum = '', lines = ''] = checked;
  if (version !== 0 && written !== formatZxid(version)) {
    const expected = `version ${formatZxid(version)}, as the name of the file says. ${COPY}, without this line`;
    return { found: `version ${written}`, expected };
  }
  const actual = checksumOf(lines);
  if (sum === actual) return null;
  const expected = `${actual}, which is that of the lines below: these were damaged or edited. ${COPY}, or, if the lines are right, remove this line`;
  return { found: `crc32 ${sum}`, expected };
}

function checksumOf(lines: string): string {
  return crc32(lines).toString(16).padStart(8, '0');
}
