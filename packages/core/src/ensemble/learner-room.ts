import type { ByteStream } from '../base/ports.ts';
import { Strangers } from '../links/strangers.ts';
import type { LinkId } from '../zab/leader-host.ts';
import { type LearnerPeer, PeerState } from '../zab/learner-peer.ts';

/** Links that have not said whose they are. */
const STRANGERS_MAX = 64;
/** Learners that are no members: observers that nobody has configured, or strangers that pretend to be some. */
const OUTSIDERS_MAX = 64;

export interface LearnersAtADoor {
  readonly learners: Iterable<Readonly<Pick<LearnerPeer, 'link' | 'serverId' | 'state'>>>;
  /** null of a link that is closing. */
  remoteOf(link: LinkId): ByteStream['remote'] | null;
  isMember(serverId: number): boolean;
}

/**
 * Whom a leader, or a follower that feeds observers, closes for another one that connects. Of too many links that have not
 * said whose they are one is closed, see `Strangers`, and of too many learners that are no members. Where descriptors run
 * short, these make room for those.
 *
 * @returns the link to close and why; 'none' when there is room; 'full' when the newcomer is to be refused
 */
export function chooseForRoom(
  { learners, remoteOf, isMember }: LearnersAtADoor,
  isCrowded: boolean,
): { readonly link: LinkId; readonly reason: string } | 'none' | 'full' {
  const strangers = new Strangers<LinkId>();
  const outsiders = new Strangers<LinkId>();
  for (const { link, state, serverId } of learners) {
    const remote = remoteOf(link);
    if (remote === null) continue;
    if (state === PeerState.connected) strangers.add(link, remote);
    else if (!isMember(serverId)) outsiders.add(link, remote);
  }
  const stranger = strangers.choose();
  if (stranger !== null && (isCrowded || strangers.size >= STRANGERS_MAX)) {
    const others = strangers.size === 1 ? 'another one has come' : `${strangers.size} have not`;
    return { link: stranger, reason: `it did not say who it is, and ${others}` };
  }
  if (!isCrowded && outsiders.size < OUTSIDERS_MAX) return 'none';
  const outsider = outsiders.choose();
  if (outsider === null) return 'full';
  return { link: outsider, reason: 'it is no member of the ensemble, and room is needed for others' };
}
