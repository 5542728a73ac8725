import type { Draft } from './draft.ts';
import type { Kind } from './kinds.ts';
import * as kinds from './kinds.ts';

/**
 * What becomes of a key:
 *
 * | tier | when it is in the file |
 * |---|---|
 * | supported | takes effect |
 * | accepted | its value is checked; it has nothing to decide here |
 * | later | warned about: this version does not have it yet |
 * | security | stops the start, because without it the server would be less safe than the file says |
 *
 * The last two are silent for values that ask for nothing, such as `sslQuorum=false`.
 */
export type Tier = 'supported' | 'accepted' | 'later' | 'security';

/** One key of zoo.cfg, or with a `*` at its end all keys with that beginning. */
export interface Key {
  readonly name: string;
  readonly tier: Tier;
  /** As it would stand in the file; '' for none. */
  readonly default: string;
  readonly meaning: string;
  readonly expected: string;
  /** Values that ask for nothing that this server does not do. */
  readonly harmless: readonly string[];
  /** Writes the value into the draft; false when it is not what the key expects. */
  take(text: string, draft: Draft, name: string): boolean;
}

export function supported<T>(
  name: string,
  kind: Kind<T>,
  defaultText: string,
  meaning: string,
  apply: (draft: Draft, value: T, name: string) => void,
): Key {
  return {
    name,
    tier: 'supported',
    default: defaultText,
    meaning,
    expected: kind.expected,
    harmless: [],
    take(text, draft, nameInFile) {
      const value = kind.parse(text);
      if (value === null) return false;
      apply(draft, value, nameInFile);
      return true;
    },
  };
}

export function accepted(name: string, kind: Kind<unknown>, defaultText: string, meaning: string): Key {
  return { ...supported(name, kind, defaultText, meaning, () => {}), tier: 'accepted' };
}

export function later(name: string, harmless: readonly string[], meaning: string): Key {
  const key = supported(name, kinds.anything, harmless[0] ?? '', meaning, () => {});
  return { ...key, tier: 'later', harmless };
}

export function security(name: string, harmless: readonly string[], meaning: string): Key {
  return { ...later(name, harmless, meaning), tier: 'security' };
}
