/** Whether a leader talks to a learner at all, by the learner's first packet. */
import { formatZxid, type LearnerInfoPacket, QUORUM_PROTOCOL_VERSION, type Zxid } from '@meerkat/protocol';

/**
 * @param leader who is asked: its id, and the version of the configuration that it follows
 * @returns what is wrong with the learner, for people; null when nothing is
 */
export function findRefusal(
  info: LearnerInfoPacket,
  leader: { readonly serverId: number; readonly configVersion: Zxid },
): string | null {
  const { serverId, protocolVersion, configVersion } = info;
  // Below 0 the owners of sessions begin that are no learners.
  if (serverId === null || serverId < 0) return 'a learner does not say which server it is';
  if (serverId === leader.serverId) return `a learner says that it is server ${serverId}, which leads`;
  if (protocolVersion < QUORUM_PROTOCOL_VERSION) {
    return `learner ${serverId} speaks protocol 0x${protocolVersion.toString(16)}: it is older than release 3.4`;
  }
  if (configVersion !== null && configVersion > leader.configVersion) {
    const version = formatZxid(configVersion);
    return `learner ${serverId} follows configuration ${version}, which is newer than ${formatZxid(leader.configVersion)} of this leader`;
  }
  return null;
}
