import type { ByteStream } from '../base/ports.ts';
import { UnidentifiedConnections } from '../links/unidentified-connections.ts';
import type { LinkId } from '../zab/leader-host.ts';
import { type LearnerPeer, PeerState } from '../zab/learner-peer.ts';

/** Links that have not identified themselves. */
const STRANGERS_MAX = 64;
/** Learners that are not members: unconfigured observers, or strangers posing as observers. */
const OUTSIDERS_MAX = 64;

export interface ConnectedLearners {
  readonly learners: Iterable<Readonly<Pick<LearnerPeer, 'link' | 'serverId' | 'state'>>>;
  /** null for a link that is closing. */
  remoteOf(link: LinkId): ByteStream['remote'] | null;
  isMember(serverId: number): boolean;
}

/**
 * Chooses the learner that a leader, or a follower that feeds observers, closes when another one connects. If too many
 * links have not identified themselves, one of those is closed (see `UnidentifiedConnections`); likewise if too many
 * learners are not members. When the process runs short of descriptors, both make room for other connections.
 *
 * @returns the link to close and why; 'none' when there is room; 'full' when the new connection must be refused
 */
export function chooseForRoom(
  { learners, remoteOf, isMember }: ConnectedLearners,
  isCrowded: boolean,
): { readonly link: LinkId; readonly reason: string } | 'none' | 'full' {
  const strangers = new UnidentifiedConnections<LinkId>();
  const outsiders = new UnidentifiedConnections<LinkId>();
  for (const { link, state, serverId } of learners) {
    const remote = remoteOf(link);
    if (remote === null) continue;
    if (state === PeerState.connected) strangers.add(link, remote);
    else if (!isMember(serverId)) outsiders.add(link, remote);
  }
  const stranger = strangers.choose();
  if (stranger !== null && (isCrowded || strangers.size >= STRANGERS_MAX)) {
    const others = strangers.size === 1 ? '' : `, like ${strangers.size - 1} others`;
    return { link: stranger, reason: `it has not identified itself${others}, and another one has connected` };
  }
  if (!isCrowded && outsiders.size < OUTSIDERS_MAX) return 'none';
  const outsider = outsiders.choose();
  if (outsider === null) return 'full';
  return { link: outsider, reason: 'it is not a member of the ensemble, and others need room' };
}
