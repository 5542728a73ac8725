import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CertificateAuthority } from './certificate-authority.ts';
import { DEFAULT_QUORUM_TLS_OPTIONS, DEFAULT_TLS_OPTIONS } from './options.ts';
import { checkClient, checkMember, refusalOfServer } from './peer-names.ts';

const authority = new CertificateAuthority();
const QUORUM = DEFAULT_QUORUM_TLS_OPTIONS;
const HOSTS = ['zk1.example.org', 'zk2.example.org', '10.0.0.3', 'localhost'];

function certify(...names: readonly string[]): X509Certificate {
  return new X509Certificate(authority.issue('somebody', { names }).certificate);
}

describe('a server that connects', () => {
  test.each([
    ['the host of a member', ['DNS:zk2.example.org'], '10.9.9.9', ['zk2.example.org']],
    [
      'the hosts of two',
      ['DNS:zk2.example.org', 'DNS:other.example.org', 'IP:10.0.0.3'],
      '10.9.9.9',
      ['zk2.example.org', '10.0.0.3'],
    ],
    ['a pattern that means some', ['DNS:*.example.org'], '10.9.9.9', ['zk1.example.org', 'zk2.example.org']],
    ['the address of a member', ['IP:10.0.0.3'], '10.9.9.9', ['10.0.0.3']],
    ['its own address, which a host of the list stands for', ['IP:127.0.0.1'], '127.0.0.1', ['localhost']],
  ])('gets in as the member at that host when its certificate names %s', async (_, names, address, hosts) => {
    expect(await checkMember(certify(...names), address, HOSTS, QUORUM)).toEqual({ hosts });
  });

  test.each([
    ['another host', ['DNS:other.example.org'], '10.9.9.9'],
    ['its own address, which no host of the list stands for', ['IP:10.9.9.9'], '10.9.9.9'],
    ['an address that a host of the list stands for, and comes from elsewhere', ['IP:127.0.0.1'], '10.9.9.9'],
    // 127.0.0.1 is called localhost by the name service of every machine.
    ['what only the name service calls its address', ['DNS:localhost.example.org'], '127.0.0.1'],
    ['nothing', [], '10.9.9.9'],
  ])('is refused when its certificate names %s', async (_, names, address) => {
    const result = await checkMember(certify(...names), address, HOSTS, QUORUM);
    const members = 'zk1.example.org, zk2.example.org, 10.0.0.3, localhost';
    expect(result).toEqual({ refusal: expect.stringContaining(`names no member of the ensemble: ${members}`) });
  });

  test.each([{ verifiesHostNames: false }, { verifiesClientHostNames: false }])(
    'is not asked for a name with %o',
    async (rules) => {
      expect(await checkMember(certify('DNS:x'), '10.9.9.9', HOSTS, { ...QUORUM, ...rules })).toEqual({ hosts: null });
    },
  );

  test("may be vouched for by its address alone when Apache's rule is switched on", async () => {
    const rules = { ...QUORUM, allowsReverseLookup: true };
    expect(await checkMember(certify('IP:10.9.9.9'), '10.9.9.9', HOSTS, rules)).toEqual({ hosts: null });
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
  expect(await checkClient(certify('IP:10.0.0.1'), '10.0.0.1', rules)).toEqual({ hosts: null });
  const result = await checkClient(certify('IP:10.0.0.1'), '10.0.0.2', rules);
  expect(result).toEqual({ refusal: expect.stringContaining('does not name its address') });
  expect(await checkClient(certify(), '10.0.0.2', DEFAULT_TLS_OPTIONS)).toEqual({ hosts: null });
});
