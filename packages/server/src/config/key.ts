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
 * | security | stops the start, because without it the server would be less safe than the file says |
 *
 * The last one is silent for values that ask for nothing, such as `quorum.auth.enableSasl=false`.
 */
export type Tier = 'supported' | 'accepted' | 'security';

/** One key of zoo.cfg, or with a `*` at its end all keys with that beginning. */
export interface Key {
  readonly name: string;
  readonly tier: Tier;
  /** As written in the file; '' for none. */
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

/** @param apply of one that is looked at once the whole file is known */
export function accepted<T>(
  name: string,
  kind: Kind<T>,
  defaultText: string,
  meaning: string,
  apply: (draft: Draft, value: T) => void = () => {},
): Key {
  return { ...supported(name, kind, defaultText, meaning, apply), tier: 'accepted' };
}

export function security(name: string, harmless: readonly string[], meaning: string): Key {
  const key = supported(name, kinds.anything, harmless[0] ?? '', meaning, () => {});
  return { ...key, tier: 'security', harmless };
}
