import { describe, expect, test } from 'vitest';
import { ConfigurationError, type ReadConfiguration, readZooCfg } from './zoo-cfg.ts';

const DIGEST = 'org.apache.zookeeper.server.auth.DigestLoginModule';
const FILES: Readonly<Record<string, string>> = {
  '/etc/jaas.conf': `Server { ${DIGEST} required user_bob="secret1" user_super="secret2"; }; Other { ${DIGEST} required user_ann="x"; };`,
  '/etc/broken.conf': `Server { ${DIGEST} required user_bob="secret1" user_super="secret2" };`,
  '/etc/unknown.conf': 'Server { com.example.Login required user_bob="secret1"; };',
  '/etc/quorum.conf': `QuorumServer { ${DIGEST} required user_zk="secret1"; }; QuorumLearner { ${DIGEST} required username="zk" password="secret1"; }; Half { ${DIGEST} required username="zk"; }; Unknown { com.example.Login required password="secret1"; };`,
  '/etc/krb.conf':
    'Server { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="zk.keytab" storeKey=true principal="zookeeper/h@R"; }; Half { com.sun.security.auth.module.Krb5LoginModule required; }; Cached { com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true ticketCache="/tmp/krb5cc_zk"; };',
  '/etc/empty.conf': '// nobody\n',
  '/etc/secrets': `${'s'.repeat(32)}\napache\n`,
  '/etc/weak': 'secret\n',
  '/etc/users': 'bob:secret1\nsuper:secret2\n',
  '/etc/krb5.conf': '[libdefaults]\n  default_realm = EXAMPLE.COM\n',
};

function read(lines: string): ReadConfiguration {
  return readZooCfg({
    text: `dataDir=/data\nclientPort=2181\n${lines}`,
    file: 'zoo.cfg',
    workingDirectory: '/etc',
    readFile: (path) => {
      const text = FILES[path];
      if (text === undefined) throw Object.assign(new Error('missing'), { code: 'ENOENT' });
      return text;
    },
  });
}

function saslOf(lines: string): ReadConfiguration['server']['auth']['sasl'] {
  return read(lines).server.auth.sasl;
}

function faultsOf(lines: string): string {
  try {
    read(lines);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  return '';
}

const JAAS = 'java.security.auth.login.config=jaas.conf';

describe('the login of SASL', () => {
  test('is the section Server of the JAAS file, or another one', () => {
    const { login } = saslOf(JAAS);
    expect(login?.users.of('bob')).toBe('secret1');
    expect(login?.users.of('ann')).toBeNull();
    expect(saslOf('java.security.auth.login.config=file:///etc/jaas.conf').login?.users.of('bob')).toBe('secret1');
    expect(saslOf(`${JAAS}\nzookeeper.sasl.serverconfig=Other`).login?.users.of('ann')).toBe('x');
  });

  test('may be a plain file', () => {
    expect(saslOf('sasl.usersFile=users').login?.users.of('super')).toBe('secret2');
  });

  test('has another password for super where a key says so', () => {
    const lines = `${JAAS}\nSASLAuthenticationProvider.superPassword=secret3`;
    expect(saslOf(lines).login?.users.of('super')).toBe('secret3');
    // As in Apache, a user who is not in the file is unknown.
    expect(saslOf(`${lines}\nsasl.serverconfig=Other`).login?.users.of('super')).toBeNull();
  });

  test('is null without configuration', () => {
    expect(saslOf('').login).toBeNull();
    const { server, warnings } = read('java.security.auth.login.config=empty.conf');
    expect(server.auth.sasl.login).toBeNull();
    expect(warnings).toEqual([
      expect.stringMatching(
        /^zoo.cfg, line 3: java.security.auth.login.config names \/etc\/empty.conf, which has no section: no client/,
      ),
    ]);
  });

  test.each([
    [
      'java.security.auth.login.config=nowhere.conf',
      /line 3: java.security.auth.login.config: found "\/etc\/nowhere.conf: there is no such file"/,
    ],
    ['java.security.auth.login.config=broken.conf', /^\/etc\/broken.conf, line 1: found "}", expected an option/],
    [
      'java.security.auth.login.config=unknown.conf',
      /^\/etc\/unknown.conf, line 1: found "com.example.Login", expected DigestLoginModule or/,
    ],
    [
      `${JAAS}\nsasl.serverconfig=Nobody`,
      /^\/etc\/jaas.conf: found "the sections Server, Other", expected a section named Nobody/,
    ],
    [
      'java.security.auth.login.config=empty.conf\nsasl.serverconfig=Server',
      /found "no section", expected a section named/,
    ],
    ['java.security.auth.login.config=empty.conf\nsessionRequireClientSASLAuth=true', /a login to check clients with/],
    [`${JAAS}\nsasl.usersFile=users`, /line 4: sasl.usersFile: found "users", expected this, or/],
    ['sasl.usersFile=jaas.conf', /^\/etc\/jaas.conf, line 1: found "a line without name/],
    ['sasl.frobnicate=1', /less safe/],
    ['kerberos.canonicalizeHostNames=true', /less safe/],
    ['security.auth_to_local=RULE', /expected rules that begin with DEFAULT/],
  ])('%j stops the start, and no password is shown', (lines, message) => {
    expect(faultsOf(lines)).toMatch(message);
    expect(faultsOf(lines)).not.toMatch(/secret/);
  });
});

describe('keys with secrets', () => {
  test('do not show their values when these are wrong', () => {
    const message = faultsOf('DigestAuthenticationProvider.superDigest=secret');
    expect(message).toContain('superDigest: found a value that is not shown, expected user:hash');
  });
});

describe('what clients must do', () => {
  const enforced = (lines: string): readonly string[] => read(lines).server.auth.enforcedSchemes;

  test('is nothing, one of several schemes, or SASL', () => {
    expect(enforced('')).toEqual([]);
    expect(enforced('enforce.auth.schemes=sasl')).toEqual([]);
    expect(enforced('enforce.auth.enabled=true\nenforce.auth.schemes=sasl, x509')).toEqual(['sasl', 'x509']);
    const both = `${JAAS}\nsessionRequireClientSASLAuth=true\nenforce.auth.enabled=true\nenforce.auth.schemes=x509`;
    expect(enforced(both)).toEqual(['sasl']);
  });

  test('must be possible', () => {
    expect(faultsOf('enforce.auth.enabled=true')).toMatch(/a line such as enforce.auth.schemes=sasl/);
    expect(faultsOf('sessionRequireClientSASLAuth=true')).toMatch(/a login to check clients with/);
  });
});

test('ids, super users and the mapping of names are those of the keys', () => {
  const sasl = saslOf(`superUser=bob\nsuperUser.2=ann\nletAnySaslUserDoX=X\nallowSaslFailedClients=true
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
java.security.krb5.conf=krb5.conf\nkerberos.removeHostFromPrincipal=true\nkerberos.removeRealmFromPrincipal=true`);
  expect(sasl).toMatchObject({
    isScheme: true,
    superUsers: ['bob', 'ann'],
    anyUserAclId: 'X',
    allowsFailedClients: true,
    mapping: { defaultRealm: 'EXAMPLE.COM', removesHost: true, removesRealm: true },
  });
});

test('further schemes are classes of Apache or modules of the user', () => {
  const { auth } = read(`authProvider.1=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider
ensembleAuthName=blue,green
authProvider.2=org.apache.zookeeper.server.auth.KeyAuthenticationProvider
authProvider.3=./badge.mjs\nauthProvider.4=/opt/token.js`).server;
  expect(auth).toMatchObject({
    ensembleNames: ['blue', 'green'],
    keyEnabled: true,
    providerModules: ['/etc/badge.mjs', '/opt/token.js'],
    unknownProviders: [],
  });
  expect(read('ensembleAuthName=blue').server.auth.ensembleNames).toBeNull();
});

describe('SASL between servers', () => {
  const quorum = 'java.security.auth.login.config=quorum.conf\nquorum.auth.enableSasl=true';

  test('is off, possible, used, demanded', () => {
    expect(read('').server.quorumSasl).toBeNull();
    const enabled = read(quorum).server;
    expect(enabled.quorumSasl).toMatchObject({ credentials: null, isRequired: false });
    expect(enabled.quorumSasl?.users.of('zk')).toBe('secret1');
    // The file may be for servers alone.
    expect(enabled.auth.sasl.login).toBeNull();
    const used = read(`${quorum}\nquorum.auth.learnerRequireSasl=true`).server.quorumSasl;
    expect(used?.credentials).toMatchObject({ username: 'zk' });
    expect(JSON.stringify(used)).not.toContain('secret');
    const required = read(`${quorum}\nquorum.auth.learnerRequireSasl=true\nquorum.auth.serverRequireSasl=true`);
    expect(required.server.quorumSasl?.isRequired).toBe(true);
  });

  test.each([
    ['quorum.auth.enableSasl=true', /java.security.auth.login.config with sections QuorumServer and QuorumLearner/],
    [
      'java.security.auth.login.config=empty.conf\nquorum.auth.enableSasl=true',
      /found "no section", expected a section named QuorumServer/,
    ],
    ['quorum.auth.learnerRequireSasl=true', /enableSasl=true beside it/],
    [`${quorum}\nquorum.auth.serverRequireSasl=true`, /learnerRequireSasl=true beside it/],
    [`${quorum}\nquorum.auth.server.saslLoginContext=X`, /expected a section named X/],
    [
      `${quorum}\nquorum.auth.learner.saslLoginContext=Half`,
      /section Half without them", expected username and password/,
    ],
    [
      `${quorum}\nquorum.auth.learner.saslLoginContext=Unknown`,
      /quorum.conf, line 1: found "com.example.Login", expected/,
    ],
    [`${quorum}\nsasl.serverconfig=Server`, /expected a section named Server/],
  ])('%j stops the start', (lines, message) => {
    expect(faultsOf(lines)).toMatch(message);
    expect(faultsOf(lines)).not.toMatch(/secret/);
  });
});

test('secrets of sessions come from a file, and a weak one stops the start', () => {
  const { sessionSecrets } = read('session.secretFile=secrets').server;
  expect(sessionSecrets).toMatchObject({ path: '/etc/secrets', rules: { count: 2, acceptsPublic: true } });
  expect(read('').server.sessionSecrets).toBeNull();
  expect(faultsOf('session.secretFile=weak')).toMatch(/^\/etc\/weak, line 1: found "a secret of 6 characters"/);
  expect(faultsOf('session.secretFile=nowhere')).toMatch(/nowhere: there is no such file/);
});

describe('a login of Kerberos', () => {
  test('is keytab and principal of Krb5LoginModule', () => {
    const { login } = saslOf('java.security.auth.login.config=krb.conf');
    expect(login?.kerberos).toEqual({ keytabPath: '/etc/zk.keytab', principal: 'zookeeper/h@R' });
  });

  test('is for servers among themselves, too', () => {
    const quorum = `java.security.auth.login.config=krb.conf\njava.security.krb5.conf=krb5.conf
quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\nquorum.auth.server.saslLoginContext=Server`;
    const own = `${quorum}\nquorum.auth.learner.saslLoginContext=Server`;
    const keytab = { keytabPath: '/etc/zk.keytab', principal: 'zookeeper/h@R' };
    const common = { configPath: '/etc/krb5.conf', servicePrincipal: 'zkquorum/localhost' };
    expect(read(own).server.quorumSasl).toMatchObject({
      kerberos: keytab,
      credentials: { options: { ...common, ...keytab, cachePath: null } },
    });
    const service = 'quorum.auth.kerberos.servicePrincipal=zkquorum/_HOST';
    expect(read(`${own}\n${service}`).server.quorumSasl?.credentials).toMatchObject({
      options: { servicePrincipal: 'zkquorum/_HOST' },
    });
    const cached = read(`${quorum}\nquorum.auth.learner.saslLoginContext=Cached`).server.quorumSasl;
    expect(cached?.credentials).toMatchObject({
      options: { ...common, keytabPath: null, cachePath: '/tmp/krb5cc_zk', principal: null },
    });
    for (const wrong of ['zkquorum', 'zkquorum/_HOST@R', '/h']) {
      expect(faultsOf(`${own}\nquorum.auth.kerberos.servicePrincipal=${wrong}`)).toMatch(
        /expected name\/host or name\/_HOST/,
      );
    }
    expect(faultsOf(`${quorum}\nquorum.auth.learner.saslLoginContext=Half`)).toMatch(/useKeyTab=true with keyTab/);
  });

  test('needs both', () => {
    const login = 'java.security.auth.login.config=krb.conf';
    expect(faultsOf(`${login}\nsasl.serverconfig=Half`)).toMatch(/useKeyTab=true with keyTab and principal/);
  });
});
