import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CertificateAuthority } from './certificate-authority.ts';
import { DEFAULT_QUORUM_TLS_OPTIONS, DEFAULT_TLS_OPTIONS } from './options.ts';
import { refusalOfClient, refusalOfMember, refusalOfServer } from './peer-names.ts';

const authority = new CertificateAuthority();
const QUORUM = DEFAULT_QUORUM_TLS_OPTIONS;
const HOSTS = ['zk1.example.org', 'zk2.example.org', '10.0.0.3', 'localhost'];

function certify(...names: readonly string[]): X509Certificate {
  return new X509Certificate(authority.issue('somebody', { names }).certificate);
}

describe('a server that connects', () => {
  test.each([
    ['the host of a member', ['DNS:zk2.example.org'], '10.9.9.9'],
    ['a pattern that means one', ['DNS:*.example.org'], '10.9.9.9'],
    ['the address of a member', ['IP:10.0.0.3'], '10.9.9.9'],
    ['its own address, which a host of the list stands for', ['IP:127.0.0.1'], '127.0.0.1'],
  ])('gets in when its certificate names %s', async (_, names, address) => {
    expect(await refusalOfMember(certify(...names), address, HOSTS, QUORUM)).toBeNull();
  });

  test.each([
    ['another host', ['DNS:other.example.org'], '10.9.9.9'],
    ['its own address, which no host of the list stands for', ['IP:10.9.9.9'], '10.9.9.9'],
    ['an address that a host of the list stands for, and comes from elsewhere', ['IP:127.0.0.1'], '10.9.9.9'],
    // 127.0.0.1 is called localhost by the name service of every machine.
    ['what only the name service calls its address', ['DNS:localhost.example.org'], '127.0.0.1'],
    ['nothing', [], '10.9.9.9'],
  ])('is refused when its certificate names %s', async (_, names, address) => {
    const refusal = await refusalOfMember(certify(...names), address, HOSTS, QUORUM);
    expect(refusal).toContain('names no member of the ensemble: zk1.example.org, zk2.example.org, 10.0.0.3, localhost');
  });

  test.each([{ verifiesHostNames: false }, { verifiesClientHostNames: false }])(
    'is not asked for a name with %o',
    async (rules) => {
      expect(await refusalOfMember(certify('DNS:x'), '10.9.9.9', HOSTS, { ...QUORUM, ...rules })).toBeNull();
    },
  );

  test("may be vouched for by its address alone when Apache's rule is switched on", async () => {
    const rules = { ...QUORUM, allowsReverseLookup: true };
    expect(await refusalOfMember(certify('IP:10.9.9.9'), '10.9.9.9', HOSTS, rules)).toBeNull();
  });
});

describe('a server that is connected to', () => {
  test.each([
    ['zk1.example.org', ['DNS:zk1.example.org'], true],
    ['zk1.example.org', ['IP:10.0.0.1'], true],
    ['10.0.0.1', ['IP:10.0.0.1'], true],
    ['zk1.example.org', ['DNS:zk2.example.org'], false],
    ['10.0.0.1', ['DNS:10.0.0.1'], false],
  ])('as %s and shows a certificate for %s: %s', async (host, names, isRight) => {
    const refusal = await refusalOfServer(certify(...names), host, '10.0.0.1', QUORUM);
    expect(refusal === null).toBe(isRight);
  });
});

test('a client has to come from an address that its certificate names, when that is asked for', async () => {
  const rules = { ...DEFAULT_TLS_OPTIONS, verifiesClientHostNames: true };
  expect(await refusalOfClient(certify('IP:10.0.0.1'), '10.0.0.1', rules)).toBeNull();
  expect(await refusalOfClient(certify('IP:10.0.0.1'), '10.0.0.2', rules)).toContain('does not name its address');
  expect(await refusalOfClient(certify(), '10.0.0.2', DEFAULT_TLS_OPTIONS)).toBeNull();
});
