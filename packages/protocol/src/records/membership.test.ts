import { describe, expect, test } from 'vitest';
import type { Zxid } from '../zxid.ts';
import {
  findMembershipFault,
  formatMember,
  formatMembership,
  isSameMembership,
  type Membership,
  parseMember,
  parseMembership,
} from './membership.ts';

function parse(text: string): Membership {
  const membership = parseMembership(text);
  if ('fault' in membership) throw new Error(membership.fault);
  return membership;
}

const faultOf = (text: string) => {
  const membership = parseMembership(text);
  return 'fault' in membership ? membership.fault : null;
};

/**
 * Texts, and how Apache ZooKeeper 3.8.0 prints the membership that it reads from each (parseDynamicConfig, then
 * toString of the verifier).
 */
const APACHE: readonly (readonly [string, string, string])[] = [
  [
    'of participants and observers, with client addresses of every form',
    'server.1=host:2888:3888:participant;2181\nserver.2=[::1]:2889:3889:observer;[fe80::A:0:1]:2182\nserver.10=h2:1:2;127.0.0.1:5\nversion=100000000',
    'server.1=host:2888:3888:participant;0.0.0.0:2181\nserver.2=[0:0:0:0:0:0:0:1]:2889:3889:observer;[fe80:0:0:0:0:a:0:1]:2182\nserver.10=h2:1:2:participant;127.0.0.1:5\nversion=100000000',
  ],
  [
    'in any order, with several addresses and the separators of properties',
    'server.3=b:1:2:participant|a:3:4\nserver.1 =  c:1:2\nserver.2:h:5:6',
    'server.1=c:1:2:participant\nserver.2=h:5:6:participant\nserver.3=a:3:4|b:1:2:participant\nversion=0',
  ],
  [
    'with groups and a weight',
    'server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2:observer\ngroup.1=1\ngroup.2=2\nweight.1=5\nversion=ABC',
    'server.1=a:1:2:participant\nserver.2=b:1:2:participant\nserver.3=c:1:2:observer\ngroup.1=1\ngroup.2=2\nweight.1=5\nweight.2=1\nversion=abc',
  ],
  [
    'with a stranger in a group, who has a weight',
    'server.1=a:1:2\ngroup.1=1:9\nweight.9=0\n',
    'server.1=a:1:2:participant\ngroup.1=1:9\nweight.1=1\nweight.9=0\nversion=0',
  ],
  [
    'with a role in odd letters',
    'server.1=a:1:2: Observer \nserver.2=b:1:2\nserver.3=c:1:2',
    'server.1=a:1:2:observer\nserver.2=b:1:2:participant\nserver.3=c:1:2:participant\nversion=0',
  ],
  [
    'with IPv4 in IPv6, and a wildcard',
    'server.1=[::ffff:1.2.3.4]:1:2;[::]:5',
    'server.1=1.2.3.4:1:2:participant;[0:0:0:0:0:0:0:0]:5\nversion=0',
  ],
  [
    'with comments, empty lines and the line ends of three systems',
    '! c\n# d\n\n  server.1 a:1:2\r\nserver.2=b:1:2\rserver.3=c:1:2',
    'server.1=a:1:2:participant\nserver.2=b:1:2:participant\nserver.3=c:1:2:participant\nversion=0',
  ],
  [
    'with two ports of one host for one server',
    'server.1=a:1:2|a:3:4\n',
    'server.1=a:1:2|a:3:4:participant\nversion=0',
  ],
  ['with separators at an end', 'server.1=a:1:2:participant:|;\n', 'server.1=a:1:2:participant\nversion=0'],
  ['with port 0', 'server.1=a:0:2;0', 'server.1=a:0:2:participant;0.0.0.0:0\nversion=0'],
  ['with a sign before the id', 'server.+1=a:1:2', 'server.1=a:1:2:participant\nversion=0'],
  ['without servers', '', 'version=0'],
];

describe.each(APACHE)('a membership %s', (_name, text, canonical) => {
  test('is read as Apache reads it, and written as Apache writes it', () => {
    expect(formatMembership(parse(text))).toBe(canonical);
    expect(formatMembership(parse(canonical))).toBe(canonical);
  });
});

test('a membership is read into members, addresses and versions', () => {
  expect(parse('server.2=b:3:4|a:1:2:observer;c:5;6\nserver.1=d:7:8;;[::1]:9\nversion=200000001')).toEqual({
    version: 0x200000001,
    members: [
      {
        serverId: 1,
        role: 'participant',
        addresses: [{ host: 'd', quorumPort: 7, electionPort: 8 }],
        client: null,
        secureClient: { host: '0:0:0:0:0:0:0:1', port: 9 },
      },
      {
        serverId: 2,
        role: 'observer',
        addresses: [
          { host: 'a', quorumPort: 1, electionPort: 2 },
          { host: 'b', quorumPort: 3, electionPort: 4 },
        ],
        client: { host: 'c', port: 5 },
        secureClient: { host: '0.0.0.0', port: 6 },
      },
    ],
    hierarchy: null,
  });
});

test('a server without a client address keeps the position of its secure one', () => {
  const member = parseMember(1, 'd:7:8;;9');
  if ('fault' in member) throw new Error(member.fault);
  expect(formatMember(member)).toBe('server.1=d:7:8:participant;;0.0.0.0:9');
});

test('a hierarchy has the groups of the text, and a weight for every participant', () => {
  const { hierarchy } = parse('server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\ngroup.7=3:1\ngroup.8=2\nweight.3=0');
  expect(hierarchy?.groups).toEqual(
    new Map([
      [7, [3, 1]],
      [8, [2]],
    ]),
  );
  expect(hierarchy?.weights).toEqual(
    new Map([
      [1, 1],
      [2, 1],
      [3, 0],
    ]),
  );
});

describe('a text is refused', () => {
  /** Apache refuses all of them but the last nine. */
  test.each([
    ['foo=3', '"foo=3" is neither server.N, group.N, weight.N nor version'],
    ['=3', '"=3" is neither'],
    ['server=a:1:2', 'is neither'],
    ['group1=1', 'is neither'],
    ['server.x=a:1:2', 'is neither'],
    ['version=', 'version "" is no zxid'],
    ['version=5 ', 'version "5 " is no zxid'],
    ['version=ffffffffffffffff', 'is no zxid'],
    ['server.1=a:1', '"a:1" is not host:quorumPort:electionPort[:role]'],
    ['server.1=a:1:2:observer:5', 'is not host:quorumPort:electionPort[:role]'],
    ['server.1=', 'there is no address'],
    ['server.1=|a:1:2', '"" is not host:quorumPort:electionPort[:role]'],
    ['server.1=[::1:1:2', 'is not host:quorumPort:electionPort[:role]'],
    ['server.1=fe80::1:1:2', 'is not host:quorumPort:electionPort[:role]'],
    ['server.1=a:1:1', 'quorum port and election port must differ'],
    ['server.1=a:70000:1', 'has a port that is not from 0 to 65535'],
    ['server.1=a:1:x', 'has a port that is not from 0 to 65535'],
    ['server.1=a:1:2:leader', '"leader" is neither participant nor observer'],
    ['server.1=a:1:2:participant|b:1:2:observer', 'its addresses name different roles'],
    ['server.1=a:1:2;[::1]', '"[::1]" is not [host:]port'],
    ['server.1=a:1:2;x', '"x" is not [host:]port'],
    ['server.1=a:1:2;a:b:3', '"a:b:3" is not [host:]port'],
    ['server.1=a:1:2;1;2;3', 'there is more than a client address and a secure client address'],
    ['server.1=a:1:2\nweight.1=3', 'server 1 is in no group'],
    ['server.1=a:1:2\ngroup.1=', 'group.1= is no list of server ids'],
    ['server.1=a:1:2\ngroup.1=1:x', 'group.1=1:x is no list of server ids'],
    ['server.1=a:1:2\ngroup.1=1\nweight.1=x', 'weight.1=x is no weight'],
    ['server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:2\ngroup.2=2', 'server 2 is in several groups'],
    ['server.1=a:1:2\nserver.3=c:1:2:observer\ngroup.1=1:3', 'group.1 has server 3, which is no participant'],
    ['server.99999999999999999=a:1:2', 'is neither'],
    ['server.1=:1:2', '":1:2" has no host'],
    ['server.1=b:1:2|\ta:1:2', 'has no host, or blanks in it'],
    ['server.1=a:1:2;b c:5', '"b c:5" is not [host:]port'],
    ['server.-1=a:1:2', 'is neither'],
    ['server.1=a:1:2\ngroup.1=1\nweight.1=-1', 'weight.1=-1 is no weight'],
    ['server.1=a:1:2\nserver.1=b:1:2', 'server.1 is there twice'],
    ['server.1=a:1:2\ngroup.1=1\ngroup.1=1', 'group.1 is there twice'],
    ['server.1=a:1:2\\\n;5', 'there is a backslash'],
  ])('%j: %s', (text, fault) => {
    expect(faultOf(text)).toContain(fault);
  });
});

test('a text of half a million blanks, or of ten thousand servers in groups, is read quickly', () => {
  expect(faultOf(`server.1${' '.repeat(500_000)}\u2028`)).toContain('server.1');
  const ids = Array.from({ length: 10_000 }, (_, i) => i + 1);
  const text = `${ids.map((id) => `server.${id}=a:1:2`).join('\n')}\ngroup.1=${ids.join(':')}`;
  expect(parse(text).hierarchy?.weights.size).toBe(10_000);
});

describe('the rules of a server forbid', () => {
  const STRICT = { isStandaloneEnabled: false, isMultiAddressEnabled: false };
  const STANDALONE = { ...STRICT, isStandaloneEnabled: true };

  test('a membership without a participant, unless it is empty and a server may be alone', () => {
    expect(findMembershipFault(parse(''), STRICT)).toBe('there is no participant');
    expect(findMembershipFault(parse(''), STANDALONE)).toBeNull();
    expect(findMembershipFault(parse('server.1=a:1:2:observer'), STANDALONE)).toContain('no participant');
  });

  test('observers of one participant if a server may be alone', () => {
    const one = parse('server.1=a:1:2\nserver.2=b:1:2:observer');
    expect(findMembershipFault(one, STANDALONE)).toContain('a single participant');
    expect(findMembershipFault(one, STRICT)).toBeNull();
    expect(findMembershipFault(parse('server.1=a:1:2'), STANDALONE)).toBeNull();
  });

  test('several addresses of a server unless that is enabled', () => {
    const several = parse('server.1=a:1:2\nserver.2=b:1:2|c:1:2\nserver.3=d:1:2');
    expect(findMembershipFault(several, STRICT)).toContain('server.2 has several addresses');
    expect(findMembershipFault(several, { ...STRICT, isMultiAddressEnabled: true })).toBeNull();
  });

  test('a text that is too long for the notifications of an election', () => {
    const listOf = (servers: number) =>
      parse(Array.from({ length: servers }, (_, i) => `server.${i + 1}=${'h'.repeat(1000)}:2888:3888`).join('\n'));
    expect(findMembershipFault(listOf(500), STRICT)).toBeNull();
    expect(findMembershipFault(listOf(520), STRICT)).toMatch(/^the list takes \d+ bytes, and servers send 524188$/);
  });
});

describe('two memberships are the same', () => {
  const base = 'server.1=a:1:2\nserver.2=[::1]:1:2';

  test('when their versions are equal', () => {
    expect(isSameMembership(parse(`${base}\nversion=5`), parse('server.9=z:1:2\nversion=5'))).toBe(true);
  });

  test('when servers, roles and weights are equal, in any order and spelling', () => {
    const other = parse('server.2=[0:0:0:0:0:0:0:1]:1:2:participant\nserver.1=a:1:2\nversion=6');
    expect(isSameMembership({ ...parse(base), version: 5 as Zxid }, other)).toBe(true);
  });

  test('but not when a role, an address, a client address or a weight differs', () => {
    const grouped = `${base}\ngroup.1=1:2`;
    for (const text of [
      'server.1=a:1:2',
      'server.1=a:1:2\nserver.2=[::1]:1:2:observer',
      'server.1=a:1:2\nserver.2=[::2]:1:2',
      'server.1=a:1:2;5\nserver.2=[::1]:1:2',
      grouped,
    ]) {
      expect(isSameMembership(parse(`${base}\nversion=5`), parse(`${text}\nversion=6`)), text).toBe(false);
    }
    expect(isSameMembership(parse(`${grouped}\nversion=5`), parse(`${grouped}\nweight.1=2\nversion=6`))).toBe(false);
  });
});
