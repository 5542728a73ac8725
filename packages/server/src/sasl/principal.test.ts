import { describe, expect, test } from 'vitest';
import { DEFAULT_PRINCIPAL_MAPPING, mapPrincipal, parsePrincipal, parsePrincipalRules } from './principal.ts';

function map(name: string, rules: string, more: Partial<typeof DEFAULT_PRINCIPAL_MAPPING> = {}): string | null {
  const parsed = parsePrincipalRules(rules);
  if (parsed === null) throw new Error(`no rules: ${rules}`);
  return mapPrincipal(name, { ...DEFAULT_PRINCIPAL_MAPPING, rules: parsed, defaultRealm: 'R', ...more });
}

describe('a name', () => {
  test.each(['a@R', 'a/h@R', 'a', '', 'a/h', 'a/b/c', '@', '/@R'])('%j is one of Kerberos, or none at all', (name) => {
    expect(parsePrincipal(name)).not.toBeNull();
  });

  test.each(['a/b/c@R', 'x@y@z', 'a@b/c'])('%j is no name', (name) => {
    expect(parsePrincipal(name)).toBeNull();
  });
});

describe('the id of a principal', () => {
  test('without a realm is its name', () => {
    expect(map('bob', 'DEFAULT')).toBe('bob');
    expect(map('a/b/c', 'DEFAULT')).toBe('a/b/c');
  });

  test('of the default realm keeps host and realm, unless they are to go', () => {
    expect(map('a/h@R', 'DEFAULT')).toBe('a/h@R');
    expect(map('a/h@R', 'DEFAULT', { removesHost: true })).toBe('a@R');
    expect(map('a/h@R', 'DEFAULT', { removesRealm: true })).toBe('a/h');
    expect(map('a@R', 'DEFAULT', { removesHost: true, removesRealm: true })).toBe('a');
  });

  test('that no rule is for does not exist', () => {
    expect(map('a@OTHER', 'DEFAULT')).toBeNull();
    expect(map('a/b/c@R', 'DEFAULT')).toBeNull();
    expect(map('a@R', 'RULE:[2:$1]')).toBeNull();
  });

  test('comes from the first rule that applies', () => {
    const rules = 'RULE:[1:$1@$0](.*@OTHER)s/@.*/-guest/ RULE:[2:$1;$2](x;.*)s/;.*// DEFAULT';
    expect(map('a@OTHER', rules, { removesRealm: true })).toBe('a-guest');
    expect(map('x/h@ELSE', rules, { removesHost: true, removesRealm: true })).toBe('x');
    expect(map('b@R', rules, { removesRealm: true })).toBe('b');
    expect(map('b@ELSE', rules)).toBeNull();
  });

  test('replaces once, or with g everywhere', () => {
    expect(map('a.b.c@R', 'RULE:[1:$1]s/\\./-/', { removesRealm: true })).toBe('a-b.c');
    expect(map('a.b.c@R', 'RULE:[1:$1]s/\\./-/g', { removesRealm: true })).toBe('a-b-c');
  });

  test('is never a principal again: a rule that leaves its realm in is as none', () => {
    expect(map('a@R', 'RULE:[1:$1@$0]')).toBeNull();
  });

  test.each(['RULE', 'RULE:[1:$1', 'RULE:[1:$1](()', 'DEFAULT x', 'RULE:[:$1]'])('%j is no rule', (rules) => {
    expect(parsePrincipalRules(rules)).toBeNull();
  });
});
