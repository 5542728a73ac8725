import type { Request } from '@meerkat/protocol';
import type { WatchKind, WatchListener } from './watch-listener.ts';

/** The listeners of one path. */
export class WatchedPath {
  readonly data: Set<WatchListener> = new Set();
  readonly exist: Set<WatchListener> = new Set();
  readonly child: Set<WatchListener> = new Set();
  readonly persistent: Set<WatchListener> = new Set();
  readonly recursive: Set<WatchListener> = new Set();
  /** An addWatch of that mode has left on this connection; its reply may not have come yet. */
  isPersistentSent = false;
  isRecursiveSent = false;
  /** On this connection, something here was left to a persistent or recursive watch that stands here. */
  hasCovered = false;
  /** On this connection, a recursive watch delivers the events of persistent ones, which were not set by themselves, or not yet. */
  isWidened = false;
  /** The removal of that watch, in whose place the others are set; its reply has not come. */
  narrowing: Request | null = null;
  /** How many of them have no reply yet. */
  persistentAsked = 0;
  recursiveAsked = 0;
  /** zxid of the last 'children' event, to deliver it once. */
  childrenZxid: bigint | null = null;

  askedOf(kind: WatchKind): number {
    if (kind === 'persistent') return this.persistentAsked;
    return kind === 'recursive' ? this.recursiveAsked : 0;
  }

  /** Events of the removed watch may be on their way until its removal is answered. */
  narrowBehind(removal: Request, kind: 'persistent' | 'recursive'): void {
    if (kind === 'recursive') this.isWidened = true;
    this.narrowing = removal;
  }

  /** A persistent or recursive watch stands here, or will in a moment. */
  get hasLasting(): boolean {
    return this.isPersistentSent || this.isRecursiveSent || this.persistent.size > 0 || this.recursive.size > 0;
  }

  get isEmpty(): boolean {
    const hasOneShots = this.data.size > 0 || this.exist.size > 0 || this.child.size > 0;
    return !this.hasLasting && !hasOneShots && !this.isWidened;
  }
}
