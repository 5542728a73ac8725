import type { Revalidations } from './revalidations.ts';
import type { Session } from './session.ts';

/** What becomes of a connect request. */
export type ConnectDecision =
  /** Nothing is answered: the client shall try another server. */
  | { readonly kind: 'close'; readonly reason: string }
  /** The session is refused or gone: the client shall start anew. */
  | { readonly kind: 'refuse'; readonly reason: string }
  | { readonly kind: 'create'; readonly timeoutMs: number }
  | { readonly kind: 'resume'; readonly session: Session }
  /** Only the leader knows whether the session lives: it is to be asked. */
  | { readonly kind: 'revalidate'; readonly timeoutMs: number; readonly revalidations: Revalidations };
