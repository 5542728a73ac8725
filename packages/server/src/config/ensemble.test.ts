import { describe, expect, test } from 'vitest';
import { ConfigurationError, type ReadConfiguration, readZooCfg } from './zoo-cfg.ts';

const BASE = 'dataDir=/data\nclientPort=2181\ninitLimit=10\nsyncLimit=5\n';
const THREE = 'server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n';

/** Reads a zoo.cfg on a machine that has these files and no others. */
function read(text: string, files: Readonly<Record<string, string>> = { '/data/myid': '2\n' }): ReadConfiguration {
  const readFile = (path: string): string => {
    const content = files[path];
    if (content === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
    return content;
  };
  return readZooCfg({ text, file: 'zoo.cfg', workingDirectory: '/etc/zk', readFile });
}

function faultsOf(text: string, files?: Readonly<Record<string, string>>): string[] {
  try {
    read(text, files);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message.split('\n');
    throw error;
  }
  return [];
}

test('an oracle of two participants stops the start, that of others decides nothing', () => {
  const two = 'server.1=a:2888:3888\nserver.2=b:2888:3888\n';
  const line = 'oraclePath=/run/oracle\n';
  expect(faultsOf(BASE + line + two)).toEqual([
    expect.stringMatching(/^zoo\.cfg, line 5: oraclePath: found "\/run\/oracle", expected no such line.*a third/),
  ]);
  expect(read(BASE + line + THREE).warnings).toEqual([]);
});

test('TTL znodes of 3.5.3 are not told from ephemerals of servers above 127', () => {
  const two = 'extendedTypesEnabled=true\nemulate353TTLNodes=true\nserver.127=a:2888:3888\nserver.128=b:2888:3888\n';
  expect(read(BASE + two, { '/data/myid': '127' }).core.emulate353TtlZnodes).toBe(true);
  expect(faultsOf(BASE + two, { '/data/myid': '128' })).toEqual([
    expect.stringMatching(/^zoo\.cfg, line 6: emulate353TTLNodes: found "true at server 128"/),
  ]);
});

describe('a server of an ensemble', () => {
  test('is the one of its myid, with the members and the limits of the file', () => {
    const { core, warnings } = read(`${BASE}${THREE}`);
    expect(warnings).toEqual([]);
    expect(core.serverId).toBe(2);
    expect(core.ensemble).toMatchObject({ initLimit: 10, syncLimit: 5, commitLogCount: 500, syncEnabled: true });
    expect(core.ensemble?.membership).toMatchObject({
      version: 0,
      hierarchy: null,
      members: [
        { serverId: 1, role: 'participant', addresses: [{ host: 'a', quorumPort: 2888, electionPort: 3888 }] },
        { serverId: 2 },
        { serverId: 3 },
      ],
    });
  });

  test('every other key about ensembles takes effect', () => {
    const { core, server, warnings } = read(
      `${BASE}${THREE}server.4=d:2888:3888:observer\ncnxTimeout=700\ncommitLogCount=600\nsnapshotSizeFactor=0.5
      observer.syncEnabled=false\nquorumListenOnAllIPs=true\nelectionAlg=3\npeerType=participant\nreconfigEnabled=true`,
    );
    expect(warnings).toEqual([]);
    expect(core.ensemble).toMatchObject({
      electionConnectTimeoutMs: 700,
      commitLogCount: 600,
      snapshotSizeFactor: 0.5,
      syncEnabled: false,
    });
    expect(core.reconfigEnabled).toBe(true);
    expect(core.ensemble?.membership.members[3]?.role).toBe('observer');
    expect([server.quorumListensOnAllIps, core.ensemble?.listensOnAllIps]).toEqual([true, true]);
  });

  test('takes clients with TLS where its own line says so', () => {
    const members = 'server.1=a:1:2;2181;10.0.0.1:2281\nserver.2=b:1:2;2181\nserver.3=c:1:2;2181\n';
    expect(faultsOf(BASE + members, { '/data/myid': '2' })).toEqual([]);
    const stores = 'ssl.keyStore.location=k.pem\nssl.trustStore.location=t.pem\n';
    const { server } = read(BASE + stores + members, { '/data/myid': '1' });
    expect(server).toMatchObject({ clientPort: 2181, secureClientPort: 2281, secureClientHost: '10.0.0.1' });
    expect(faultsOf(BASE + members, { '/data/myid': '1' }).join()).toContain('ssl.keyStore.location');
  });

  test('has several addresses where that is allowed', () => {
    const several = `${BASE}${THREE}server.4=d:2888:3888|e:2889:3889\nserver.5=f:2888:3888\nmultiAddress.enabled=true\n`;
    const { core, warnings } = read(several);
    expect(warnings).toEqual([]);
    expect(core.ensemble?.membership.members[3]?.addresses).toEqual([
      { host: 'd', quorumPort: 2888, electionPort: 3888 },
      { host: 'e', quorumPort: 2889, electionPort: 3889 },
    ]);
    expect(core.ensemble?.addressTimeoutMs).toBe(1000);
    const timeoutOf = (lines: string): number | undefined => read(several + lines).core.ensemble?.addressTimeoutMs;
    expect(timeoutOf('multiAddress.reachabilityCheckTimeoutMs=300')).toBe(300);
    expect(timeoutOf('multiAddress.reachabilityCheckEnabled=false\ncnxTimeout=700')).toBe(700);
    expect(faultsOf(several.replace('enabled=true', 'enabled=false'))).toEqual([
      'zoo.cfg, line 5: server.1: found "server.4 has several addresses while multiAddress.enabled is false", expected members that can form an ensemble',
    ]);
  });

  test('groups and weights make a hierarchy', () => {
    const { core } = read(`${BASE}${THREE}group.1=1:2\ngroup.2=3\nweight.1=2`);
    expect(core.ensemble?.membership.hierarchy).toEqual({
      groups: new Map([
        [1, [1, 2]],
        [2, [3]],
      ]),
      weights: new Map([
        [1, 2],
        [2, 1],
        [3, 1],
      ]),
    });
    expect(faultsOf(`${BASE}${THREE}group.1=1:2`)).toEqual([
      'zoo.cfg, line 8: group.1: found "server 3 is in no group", expected groups and weights that fit the list of servers',
    ]);
    const all = 'group.1=1:2:3\nweight.1=0\nweight.2=0\nweight.3=0';
    expect(faultsOf(`${BASE}${THREE}${all}`).join()).toContain('there would be no quorum');
  });

  test('its own line may say where its clients connect', () => {
    const base = 'dataDir=/data\ninitLimit=10\nsyncLimit=5\n';
    const members = 'server.1=a:1:2;9\nserver.2=b:1:2;10.0.0.2:2190\nserver.3=c:1:2;2181\n';
    expect(read(base + members).server).toMatchObject({ clientPort: 2190, clientHost: '10.0.0.2' });
    expect(read(base + members, { '/data/myid': '3' }).server).toMatchObject({ clientPort: 2181, clientHost: null });
    expect(faultsOf(`clientPort=2181\n${base}${members}`)).toEqual([
      'zoo.cfg, line 1: clientPort: found "2181", expected what the list of members says about this server, 10.0.0.2:2190, or no such line',
    ]);
  });

  test('may have the members in a file of their own, whose name says their version', () => {
    const text = `${BASE}dynamicConfigFile=zoo.cfg.dynamic.1000000ab`;
    const path = '/etc/zk/zoo.cfg.dynamic.1000000ab';
    const { core } = read(text, { '/data/myid': '1', [path]: THREE });
    expect(core.ensemble?.membership).toMatchObject({ version: 0x1000000ab, members: [{}, {}, {}] });
    expect(faultsOf(text)).toEqual([
      'zoo.cfg, line 5: dynamicConfigFile: found "no file zoo.cfg.dynamic.1000000ab", expected a file that lists the members, with lines such as server.1=host:2888:3888;2181. Copy the list of a running member (`config` in a client) into it',
    ]);
    expect(faultsOf(text, { '/data/myid': '1', [path]: `${THREE}version=5` })).toEqual([
      'zoo.cfg.dynamic.1000000ab, line 4: version: found "5", expected only server.N, group.N and weight.N in a file of members',
    ]);
    expect(faultsOf(`${text}\nserver.1=a:1:2`, { '/data/myid': '1', [path]: THREE })).toEqual([
      'zoo.cfg, line 6: server.1: found "a:1:2", expected it in zoo.cfg.dynamic.1000000ab: dynamicConfigFile lists the members',
    ]);
  });

  test('alone in the list it is a server of its own, unless standaloneEnabled is false', () => {
    expect(read('dataDir=/data\nclientPort=1\nserver.7=a:2888:3888', {}).core).toMatchObject({
      serverId: 1,
      ensemble: null,
    });
    const { core } = read(`${BASE}server.7=a:2888:3888\nstandaloneEnabled=false`, { '/data/myid': '7' });
    expect(core.ensemble?.membership.members).toHaveLength(1);
    expect(faultsOf(`${BASE}standaloneEnabled=false`)).toEqual([
      'zoo.cfg, line 5: standaloneEnabled: found "false", expected a list of members as well, with lines such as server.1=host:2888:3888',
    ]);
  });
});

describe('what contradicts itself is explained', () => {
  test.each([
    [
      'no myid',
      {},
      'found "no file /data/myid", expected the id of this server, one of 1, 2, 3: for server.1, write "1" into it',
    ],
    [
      'a myid that is no number',
      { '/data/myid': 'two' },
      'found "two", expected a number and nothing else: the id of this server, one of 1, 2, 3',
    ],
    [
      'a myid that is not in the list',
      { '/data/myid': '4' },
      'found "4", expected an id that zoo.cfg lists: one of 1, 2, 3. Is this the data directory of another server, or is server.4 missing from the list?',
    ],
  ])('%s', (_title, files, message) => {
    expect(faultsOf(`${BASE}${THREE}`, files)).toEqual([`/data/myid: ${message}`]);
  });

  test('a log directory that belongs to another server', () => {
    const files = { '/data/myid': '2', '/log/myid': '3' };
    expect(faultsOf(`${BASE}dataLogDir=/log\n${THREE}`, files)).toEqual([
      '/log/myid: found "3", expected 2, as in dataDir: dataLogDir belongs to another server',
    ]);
  });

  test.each([
    [
      'two servers at one address',
      'server.4=A:2888:3889',
      'server.4',
      'a:2888 is the quorum port of server.1 already, and the quorum port of server.4',
    ],
    [
      'the election port of one as the quorum port of another',
      'server.4=a:3888:3889',
      'server.4',
      'a:3888 is the election port of server.1 already',
    ],
    ['one port for two purposes', 'server.4=d:2888:2888', 'server.4', 'quorum port and election port must differ'],
    [
      'a client port that is the election port',
      'server.4=d:2888:3888;3888',
      'server.4',
      'd:3888 is the election port of server.4 already, and the client port of server.4',
    ],
    ['an invalid member', 'server.4=d:2888', 'server.4', '"d:2888" is not host:quorumPort:electionPort[:role]'],
    ['an unknown role', 'server.4=d:2888:3888:leader', 'server.4', '"leader" is neither participant nor observer'],
    ['an id that no session id can hold', 'server.256=d:2888:3888', 'server.256', 'a number from 0 to 255'],
    ['several addresses', 'server.4=d:2888:3888|e:2888:3888', 'server.1', 'members that can form an ensemble'],
  ])('%s', (_title, line, key, message) => {
    const [fault, ...others] = faultsOf(`${BASE}${THREE}${line}`);
    expect(others).toEqual([]);
    expect(fault).toContain(`zoo.cfg, line ${key === 'server.1' ? 5 : 8}: ${key}: found`);
    expect(fault).toContain(message);
  });

  test('limits that are missing or 0, which a server of its own does not need', () => {
    expect(faultsOf(`dataDir=/data\nclientPort=1\nsyncLimit=0\n${THREE}`)).toEqual([
      'zoo.cfg: initLimit: found "no such line", expected a line such as initLimit=10: an ensemble needs it',
      'zoo.cfg, line 3: syncLimit: found "0", expected a line such as syncLimit=5: an ensemble needs it',
    ]);
    expect(faultsOf('dataDir=/data\nclientPort=1\nsyncLimit=0\n')).toEqual([]);
  });

  test('observers without the participants that they could observe', () => {
    expect(faultsOf(`${BASE}server.1=a:1:2\nserver.2=b:1:2:observer`)).toEqual([
      'zoo.cfg, line 5: server.1: found "there are observers of a single participant while standaloneEnabled is true", expected members that can form an ensemble',
    ]);
    expect(faultsOf(`${BASE}server.2=b:1:2:observer`).join()).toContain('there are observers but no participant');
  });
});

describe('a warning goes with', () => {
  test('an even number of voters, with its reason', () => {
    expect(read(`${BASE}${THREE}server.4=d:2888:3888`).warnings).toEqual([
      'zoo.cfg, line 8: server.4 makes 4 voters, an even number: a quorum is 3, so no more of them may fail than of 3, which is 1. An odd number is better',
    ]);
    expect(read(`${BASE}server.1=a:1:2\nserver.2=b:1:2`).warnings).toEqual([
      'zoo.cfg, line 6: server.2 makes 2 voters, an even number: a quorum is 2, so none of them may fail, and one server alone would be as safe. An odd number is better',
    ]);
    expect(read(`${BASE}${THREE}server.4=d:2888:3888:observer`).warnings).toEqual([]);
  });

  test('a peerType that is not the one of the list', () => {
    expect(read(`${BASE}${THREE}peerType=observer`).warnings).toEqual([
      'zoo.cfg, line 8: peerType is observer, but server.2 is listed as participant: the list counts',
    ]);
  });
});
