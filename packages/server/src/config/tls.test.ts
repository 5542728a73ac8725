import { describe, expect, test } from 'vitest';
import { DEFAULT_QUORUM_TLS_OPTIONS, DEFAULT_TLS_OPTIONS } from '../tls/options.ts';
import { ConfigurationError, type ReadConfiguration, readZooCfg } from './zoo-cfg.ts';

const BASE = 'dataDir=/data\n';
const STORES = 'ssl.keyStore.location=k.pem\nssl.trustStore.location=t.pem\n';
const QUORUM_STORES = STORES.replaceAll('ssl.', 'ssl.quorum.');

function read(...lines: readonly string[]): ReadConfiguration {
  return readZooCfg({ text: lines.join('\n'), file: 'zoo.cfg', workingDirectory: '/etc/zk' });
}

function faultsOf(...lines: readonly string[]): string {
  try {
    read(...lines);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  return '';
}

describe('TLS for clients', () => {
  test('has a port beside the plain one, or alone', () => {
    const both = read(BASE, 'clientPort=2181\nsecureClientPort=2281\nsecureClientPortAddress=10.0.0.1', STORES).server;
    expect(both).toMatchObject({ clientPort: 2181, secureClientPort: 2281, secureClientHost: '10.0.0.1' });
    const alone = read(BASE, 'secureClientPort=2281', STORES).server;
    expect(alone).toMatchObject({ clientPort: null, secureClientPort: 2281, secureClientHost: null });
    expect(alone.auth.x509Enabled).toBe(true);
  });

  test("has Apache's defaults but for versions and renewal", () => {
    const { server, warnings } = read(BASE, 'secureClientPort=2281', STORES);
    expect(warnings).toEqual([]);
    expect(server.tls).toEqual({
      ...DEFAULT_TLS_OPTIONS,
      keyStore: { path: '/etc/zk/k.pem', password: '', passwordPath: null },
      trustStore: { path: '/etc/zk/t.pem', password: '', passwordPath: null },
    });
    expect(server.tls).toMatchObject({ clientAuth: 'need', protocols: ['TLSv1.2', 'TLSv1.3'], renews: true });
  });

  test('takes every key of it', () => {
    const { server, warnings } = read(
      `${BASE}clientPort=2181\nclient.portUnification=true\nserverCnxnFactory=org.apache.zookeeper.server.NIOServerCnxnFactory`,
      'ssl.keyStore.location=/k.jks\nssl.keyStore.password=one\nssl.keyStore.passwordPath=pw\nssl.keyStore.type=jks',
      'ssl.trustStore.location=/t.jks\nzookeeper.ssl.trustStore.password=two\nssl.crl=true\nssl.crl.location=crl.pem',
      'ssl.enabledProtocols=TLSv1.3\nssl.clientAuth=WANT\nssl.hostnameVerification=false\nssl.clientHostnameVerification=true',
      'ssl.ciphersuites=TLS_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\nclient.certReload=false',
      'netty.server.outstandingHandshake.limit=7\nssl.handshakeDetectionTimeoutMillis=300\nssl.ocsp=false',
      'X509AuthenticationProvider.superUser=CN=root\nX509AuthenticationProvider.subjectAltNames=true',
      'authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\nfips-mode=false',
    );
    expect(warnings).toEqual([]);
    expect(server.clientPortUnification).toBe(true);
    expect(server.auth).toMatchObject({ x509Enabled: true, x509SuperUser: 'CN=root', x509AlternativeNames: true });
    expect(server.tls).toEqual({
      prefix: 'ssl',
      keyStore: { path: '/k.jks', password: 'one', passwordPath: '/etc/zk/pw' },
      trustStore: { path: '/t.jks', password: 'two', passwordPath: null },
      crlPath: '/etc/zk/crl.pem',
      protocols: ['TLSv1.3'],
      cipherSuites: ['TLS_AES_256_GCM_SHA384', 'ECDHE-RSA-AES128-GCM-SHA256'],
      clientAuth: 'want',
      verifiesHostNames: false,
      verifiesClientHostNames: true,
      allowsReverseLookup: false,
      handshakeTimeoutMs: 300,
      handshakesMax: 7,
      renews: false,
      renewalPollMs: 2000,
    });
  });

  test('speaks the one version that ssl.protocol names, unless versions are listed', () => {
    const base = [BASE, 'secureClientPort=2281', STORES];
    expect(read(...base, 'ssl.protocol=TLSv1.2').server.tls.protocols).toEqual(['TLSv1.2']);
    expect(read(...base, 'ssl.protocol=TLS').server.tls.protocols).toEqual(['TLSv1.2', 'TLSv1.3']);
    const listed = read(...base, 'ssl.protocol=TLSv1.2\nssl.enabledProtocols=TLSv1.3,TLSv1.1');
    expect(listed.server.tls.protocols).toEqual(['TLSv1.3']);
    expect(listed.warnings.join()).toContain('ssl.enabledProtocols lists TLSv1.1, which this server does not speak');
  });
});

describe('TLS between servers', () => {
  test('has keys of its own', () => {
    const { server } = read(BASE, 'clientPort=2181\nsslQuorum=true\nportUnification=true', QUORUM_STORES);
    expect(server).toMatchObject({ sslQuorum: true, quorumPortUnification: true, secureClientPort: null });
    expect(server.quorumTls).toMatchObject({
      ...DEFAULT_QUORUM_TLS_OPTIONS,
      keyStore: { path: '/etc/zk/k.pem' },
      trustStore: { path: '/etc/zk/t.pem' },
    });
    expect(server.auth.x509Enabled).toBe(false);
  });
});

describe('a start is stopped by', () => {
  test.each<[what: string, lines: string, message: string]>([
    [
      'TLS without a key',
      'secureClientPort=1',
      'zoo.cfg: ssl.keyStore.location: found "no such line", expected the file',
    ],
    [
      'certificates that nothing can check',
      `secureClientPort=1\nssl.keyStore.location=k`,
      'ssl.trustStore.location: found',
    ],
    ['TLS between servers without stores', 'clientPort=1\nsslQuorum=true', 'ssl.quorum.trustStore.location: found'],
    [
      'an address without its port',
      'clientPort=1\nsecureClientPortAddress=::1',
      'secureClientPort: found "no such line"',
    ],
    ['no port at all', '', 'clientPort: found "no such line"'],
    [
      'lists of revoked certificates that would be downloaded',
      `secureClientPort=1\n${STORES}ssl.crl=true`,
      'ssl.crl.location as well',
    ],
    [
      'OCSP',
      `secureClientPort=1\n${STORES}ssl.ocsp=true`,
      'ssl.ocsp: found "true", expected false: OCSP is not asked here',
    ],
    ['a class that makes TLS', `${STORES}ssl.context.supplier.class=org.example.Tls`, 'there is no Java here'],
    ['a class that makes identities', `${STORES}ssl.authProvider=mine`, 'ssl.authProvider: found "mine"'],
    ['an unknown cipher suite', 'ssl.ciphersuites=TLS_RSA_WITH_RC4_128_MD5', 'names of cipher suites'],
    ['old versions alone', 'ssl.enabledProtocols=TLSv1,TLSv1.1', 'TLSv1.2, TLSv1.3, or both'],
    ['a store of Bouncy Castle', 'ssl.keyStore.type=BCFKS', 'JKS, PEM or PKCS12'],
    ['an unknown value of clientAuth', 'ssl.clientAuth=yes', 'none, want or need'],
  ])('%s', (_, lines, message) => {
    expect(faultsOf(BASE, lines)).toContain(message.startsWith('there') ? 'ssl.context.supplier.class' : message);
  });
});

test('a secret is not shown in messages', () => {
  expect(faultsOf(BASE, 'clientPort=1\nDigestAuthenticationProvider.superDigest=s3cret')).toMatch(
    /superDigest: found a value that is not shown, expected user:hash/,
  );
});

describe('TLS for administrators and Prometheus', () => {
  const CLIENT = `${BASE}clientPort=2181`;
  const PROMETHEUS = 'metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider';
  const METRICS_STORES = STORES.replaceAll('ssl.', 'metricsProvider.ssl.');

  test('is that of the stores between servers, unless the admin port has its own', () => {
    const { server, warnings } = read(CLIENT, QUORUM_STORES, 'admin.portUnification=true');
    expect(warnings).toEqual([]);
    expect(server.admin?.tls).toMatchObject({
      isUnified: true,
      options: { prefix: 'ssl.quorum', keyStore: { path: '/etc/zk/k.pem' }, clientAuth: 'none' },
    });
    const own = read(CLIENT, QUORUM_STORES, 'admin.ssl.keyStore.location=a.pem\nadmin.forceHttps=true');
    expect(own.server.admin?.tls).toMatchObject({
      isUnified: false,
      options: { prefix: 'admin.ssl', keyStore: { path: '/etc/zk/a.pem' }, trustStore: { path: null } },
    });
    expect(own.server.auth.x509Enabled).toBe(false);
    expect(read(CLIENT).server.admin?.tls).toBeNull();
  });

  test('asks administrators for certificates, which make identities', () => {
    const text = 'admin.forceHttps=true\nadmin.portUnification=true\nadmin.needClientAuth=true';
    const { server } = read(CLIENT, QUORUM_STORES, text);
    expect(server.admin?.tls).toMatchObject({ isUnified: false, options: { clientAuth: 'need' } });
    expect(server.auth.x509Enabled).toBe(true);
    expect(faultsOf(CLIENT, text)).toMatch(
      /ssl\.quorum\.keyStore\.location: found "no such line"[\s\S]*ssl\.quorum\.trustStore\.location: .* or admin\.needClientAuth=false/,
    );
    expect(faultsOf(CLIENT, 'admin.needClientAuth=true')).toMatch(/admin\.needClientAuth: found "true", .*forceHttps/);
    expect(faultsOf(CLIENT, QUORUM_STORES, text, 'admin.ssl.crl=true')).toContain('admin.ssl.keyStore.location');
    expect(faultsOf(CLIENT, text, 'admin.enableServer=false')).toBe('');
  });

  test("has Apache's keys for Prometheus: a port beside the plain one, instead of it, or the same", () => {
    const base = [CLIENT, PROMETHEUS, METRICS_STORES];
    const secure = { port: 7001, options: { prefix: 'metricsProvider.ssl', clientAuth: 'need' } };
    expect(read(...base, 'metricsProvider.httpsPort=7001').server.metricsPort).toMatchObject({ port: null, secure });
    const both = read(...base, 'metricsProvider.httpsPort=7001\nmetricsProvider.httpPort=7000').server;
    expect(both.metricsPort).toMatchObject({ host: '127.0.0.1', port: 7000, secure });
    expect(read(...base).server.metricsPort).toMatchObject({ port: 7000, secure: null });
    const want = read(...base, 'metricsProvider.httpsPort=7001\nmetricsProvider.ssl.need.client.auth=false').server;
    expect(want.metricsPort?.secure?.options.clientAuth).toBe('want');
    const none = 'metricsProvider.ssl.need.client.auth=false\nmetricsProvider.ssl.want.client.auth=false';
    const open = read(
      CLIENT,
      PROMETHEUS,
      none,
      'metricsProvider.httpsPort=7001\nmetricsProvider.ssl.keyStore.location=k',
    );
    expect(open.server.metricsPort?.secure?.options.clientAuth).toBe('none');
    expect(faultsOf(CLIENT, PROMETHEUS, 'metricsProvider.httpsPort=7001')).toMatch(
      /metricsProvider\.ssl\.keyStore\.location[\s\S]*metricsProvider\.ssl\.trustStore\.location/,
    );
    expect(faultsOf(CLIENT, PROMETHEUS, 'metricsProvider.httpPort=-1')).toContain(
      'metricsProvider.httpPort: found "-1"',
    );
    expect(faultsOf(CLIENT, 'metricsProvider.ssl.hostnameVerification=true')).toContain('another setting of TLS');
  });
});
