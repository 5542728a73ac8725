import { ENSEMBLE_KEYS } from './ensemble-keys.ts';
import { HTTP_KEYS } from './http-keys.ts';
import type { Key } from './key.ts';
import { LIMIT_KEYS } from './limit-keys.ts';
import { OTHER_KEYS } from './other-keys.ts';
import { SASL_KEYS } from './sasl-keys.ts';
import { SUPPORTED_KEYS } from './supported-keys.ts';
import { TLS_KEYS } from './tls-keys.ts';

/** Every key that we know. */
export const KEYS: readonly Key[] = [
  ...SUPPORTED_KEYS,
  ...SASL_KEYS,
  ...TLS_KEYS,
  ...HTTP_KEYS,
  ...LIMIT_KEYS,
  ...ENSEMBLE_KEYS,
  ...OTHER_KEYS,
];

/** The key of that name, with or without ZooKeeper's prefix for system properties; null when it is unknown. */
export function findKey(name: string): Key | null {
  const bare = withoutPrefix(name);
  const exact = KEYS_BY_NAME.get(bare);
  if (exact !== undefined) return exact;
  let longest: Key | null = null;
  for (const key of KEY_FAMILIES) {
    const prefix = key.name.slice(0, -1);
    if (bare.startsWith(prefix) && bare.length > prefix.length && key.name.length > (longest?.name.length ?? 0))
      longest = key;
  }
  return longest;
}

/** A key that differs only in case, which ZooKeeper does not accept; null when there is none. */
export function findSimilarName(name: string): string | null {
  const lower = withoutPrefix(name).toLowerCase();
  return KEYS.find((key) => key.name.toLowerCase() === lower)?.name ?? null;
}

function withoutPrefix(name: string): string {
  return name.startsWith(PROPERTY_PREFIX) ? name.slice(PROPERTY_PREFIX.length) : name;
}

const PROPERTY_PREFIX = 'zookeeper.';
const KEYS_BY_NAME: ReadonlyMap<string, Key> = new Map(KEYS.map((key) => [key.name, key]));
const KEY_FAMILIES: readonly Key[] = KEYS.filter((key) => key.name.endsWith('*'));
