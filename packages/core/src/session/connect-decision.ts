import type { Revalidations } from './revalidations.ts';
import type { Session } from './session.ts';

/** The outcome of a connect request. */
export type ConnectDecision =
  /** Closes without a reply: the client should try another server. */
  | { readonly kind: 'close'; readonly reason: string }
  /** The session is refused or has ended: the client must create a new one. */
  | { readonly kind: 'refuse'; readonly reason: string }
  | { readonly kind: 'create'; readonly timeoutMs: number }
  | { readonly kind: 'resume'; readonly session: Session }
  /** Only the leader knows whether the session is alive: it must be asked. */
  | { readonly kind: 'revalidate'; readonly timeoutMs: number; readonly revalidations: Revalidations };
