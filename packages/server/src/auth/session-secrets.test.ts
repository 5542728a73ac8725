import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { APACHE_SESSION_PASSWORDS } from '@meerkat/core';
import { afterEach, describe, expect, test } from 'vitest';
import { parseSessionSecrets, type SessionRules, SessionSecrets } from './session-secrets.ts';

const OLD = 'o'.repeat(32);
const NEW = 'n'.repeat(40);
const ID = 0x0100_0000_0000_0001n;

function rules(text: string): SessionRules {
  const parsed = parseSessionSecrets(text);
  if ('fault' in parsed) throw new Error(parsed.fault.found);
  return parsed.rules;
}

describe('secrets of sessions', () => {
  test('make the first 16 bytes of an HMAC-SHA-256 of the id', () => {
    // printf '\x01\0\0\0\0\0\0\x01' | openssl dgst -sha256 -hmac oooooooooooooooooooooooooooooooo
    expect(Buffer.from(rules(OLD).make(ID)).toString('hex')).toBe('457753f9172b21a3b41f278af5a0fce4');
    expect(rules(OLD).make(ID)).not.toEqual(rules(OLD).make(ID + 1n));
  });

  test('may begin with the new one while the old one is accepted still', () => {
    const both = rules(`# renewed today\n${NEW}\r\n\n${OLD}\n`);
    expect(both.make(ID)).toEqual(rules(NEW).make(ID));
    expect(both.isValid(ID, rules(OLD).make(ID))).toBe(true);
    expect(rules(NEW).isValid(ID, rules(OLD).make(ID))).toBe(false);
  });

  test("stand before or behind Apache's formula, which is refused where the file does not name it", () => {
    const apache = APACHE_SESSION_PASSWORDS.make(ID);
    expect(rules(`apache\n${NEW}`).make(ID)).toEqual(apache);
    expect(rules(`${NEW}\napache`).make(ID)).toEqual(rules(NEW).make(ID));
    expect(rules(`${NEW}\napache`).isValid(ID, apache)).toBe(true);
    expect(rules(NEW).isValid(ID, apache)).toBe(false);
  });

  test.each([
    ['', null, 'no secret'],
    ['# nothing', null, 'no secret'],
    ['short', 1, 'a secret of 5 characters'],
    [`${OLD}\n${OLD}`, 2, 'a line again'],
  ])('rejects %j', (text, line, found) => {
    expect(parseSessionSecrets(text)).toEqual({ fault: { line, found } });
  });

  test('are not shown by what prints them', () => {
    expect(JSON.stringify(rules(OLD))).not.toContain('ooo');
  });
});

describe('a file of secrets', () => {
  const directory = mkdtempSync(join(tmpdir(), 'session-secrets-'));
  const path = join(directory, 'secrets');
  let secrets: SessionSecrets | null = null;
  afterEach(() => {
    secrets?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('is read again when it changes, and a broken one changes nothing', async () => {
    const said: string[] = [];
    writeFileSync(path, OLD);
    secrets = new SessionSecrets(path, rules(OLD), { onNotice: (m) => said.push(m), onWarning: (m) => said.push(m) });
    secrets.start();
    writeFileSync(path, `${NEW}\n${OLD}`);
    await expect.poll(() => secrets?.make(ID)).toEqual(rules(NEW).make(ID));
    writeFileSync(path, 'short');
    await expect.poll(() => said.at(-1)).toMatch(/not used.*secrets, line 1: found a secret of 5/);
    expect(secrets.make(ID)).toEqual(rules(NEW).make(ID));
    expect(secrets.isValid(ID, rules(OLD).make(ID))).toBe(true);
  });
});
