import type { Paint } from '../output/paint.ts';
import type { SessionState } from './shell-session.ts';
import type { Missing } from './words.ts';

/** What the prompt reports. */
export interface Standing {
  readonly server: string;
  readonly state: SessionState;
  readonly path: string;
}

/** `[127.0.0.1:2181(CONNECTED) /app] `: server and state as zkCli has them, and the current znode. */
export function formatPrompt({ server, state, path }: Standing, paint: Paint): string {
  const shownState = state.toUpperCase();
  const painted =
    state === 'connected'
      ? paint.good(shownState)
      : state === 'lost' || state === 'closed'
        ? paint.bad(shownState)
        : paint.notable(shownState);
  return `[${server}(${painted}) ${paint.bold(path)}] `;
}

/** While a value continues over lines. */
export function formatContinuation(missing: Missing, paint: Paint): string {
  switch (missing.kind) {
    case 'quote':
      return paint.dim(`${missing.quote.slice(-1)}> `);
    case 'document':
      return paint.dim(`${missing.mark}> `);
    case 'next-line':
      return paint.dim('> ');
  }
}
