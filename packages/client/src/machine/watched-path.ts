import type { Request } from '@meerkat/protocol';
import type { WatchKind, WatchListener } from './watch-listener.ts';

/** The listeners of one path. */
export class WatchedPath {
  readonly data: Set<WatchListener> = new Set();
  readonly exist: Set<WatchListener> = new Set();
  readonly child: Set<WatchListener> = new Set();
  readonly persistent: Set<WatchListener> = new Set();
  readonly recursive: Set<WatchListener> = new Set();
  /** An addWatch of that mode has been sent on this connection; its reply may not have arrived yet. */
  isPersistentSent = false;
  isRecursiveSent = false;
  /** On this connection, a one-shot watch here was left to a persistent or recursive watch. */
  hasCovered = false;
  /**
   * On this connection, a recursive watch delivers the events of persistent ones, which were not set themselves, or not
   * yet.
   */
  isWidened = false;
  /** The removal of that watch, which the others replace; its reply has not arrived. */
  narrowing: Request | null = null;
  /** Number of addWatch requests without a reply. */
  persistentAsked = 0;
  recursiveAsked = 0;
  /** zxid of the last 'children' event, to deliver it once. */
  childrenZxid: bigint | null = null;

  askedOf(kind: WatchKind): number {
    if (kind === 'persistent') return this.persistentAsked;
    return kind === 'recursive' ? this.recursiveAsked : 0;
  }

  /** Events of the removed watch may be in flight until its removal is answered. */
  narrowBehind(removal: Request, kind: 'persistent' | 'recursive'): void {
    if (kind === 'recursive') this.isWidened = true;
    this.narrowing = removal;
  }

  /** There is a persistent or recursive watch here, or will be in a moment. */
  get hasLasting(): boolean {
    return this.isPersistentSent || this.isRecursiveSent || this.persistent.size > 0 || this.recursive.size > 0;
  }

  get isEmpty(): boolean {
    const hasOneShots = this.data.size > 0 || this.exist.size > 0 || this.child.size > 0;
    return !this.hasLasting && !hasOneShots && !this.isWidened;
  }
}
