import { formatMember, type Membership } from '@meerkat/protocol';
import { parseProperties } from '../config/properties.ts';
import { withChecksum } from './list-checksum.ts';

/** Keys that say who the members are, which from now on a file of its own says. */
const MEMBER_KEY = /^(server|group|weight)\.|^(dynamicConfigFile|peerType)$/;
const CLIENT_KEY = /^clientPort(Address)?$/;

/**
 * A zoo.cfg that names a file of members in place of listing them (QuorumPeerConfig.editStaticConfig). Everything else,
 * comments included, stays as it is.
 *
 * @param dynamicFile the path that it names
 * @param saysClientPort the file of members says where clients connect to this server, so this one must not
 */
export function editStaticFile(text: string, dynamicFile: string, saysClientPort: boolean): string {
  const lines = text.split(/\r\n|\n|\r/);
  const dropped = new Set<number>();
  for (const { key, line } of parseProperties(text).properties) {
    const name = key.startsWith('zookeeper.') ? key.slice('zookeeper.'.length) : key;
    if (line === null) continue;
    if (!MEMBER_KEY.test(name) && !(saysClientPort && CLIENT_KEY.test(name))) continue;
    // A value may span several lines.
    for (let at = line; ; at++) {
      dropped.add(at);
      if (at >= lines.length || !/(^|[^\\])(\\\\)*\\$/.test(lines[at - 1] ?? '')) break;
    }
  }
  const kept = lines.filter((_, index) => !dropped.has(index + 1));
  while (kept.at(-1) === '') kept.pop();
  // A backslash would begin an escape.
  return `${[...kept, `dynamicConfigFile=${dynamicFile.replaceAll('\\', '\\\\')}`].join('\n')}\n`;
}

/** True when the text lists members itself. */
export function listsMembers(text: string): boolean {
  return parseProperties(text).properties.some(({ key }) => key.startsWith('server.'));
}

/** A file of members, without a line for its version: the name of the file has that. */
export function formatDynamicFile({ members, hierarchy, version }: Membership): string {
  const lines = members.map(formatMember);
  if (hierarchy !== null) {
    for (const [group, servers] of hierarchy.groups) lines.push(`group.${group}=${servers.join(':')}`);
    for (const [server, weight] of hierarchy.weights) lines.push(`weight.${server}=${weight}`);
  }
  return withChecksum(`${lines.sort().join('\n')}\n`, version);
}
