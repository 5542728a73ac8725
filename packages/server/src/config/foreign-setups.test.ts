import { describe, expect, test } from 'vitest';
import { ConfigurationError, type ReadConfiguration, readZooCfg } from './zoo-cfg.ts';

/*
 * The configuration files that well-known packagings of ZooKeeper write for their secured set-ups, shortened to the keys that
 * matter. What they pass to Java on its command line (-D…) stands in the file here.
 */

const DIGEST = 'org.apache.zookeeper.server.auth.DigestLoginModule';
const JAAS = `
Client { ${DIGEST} required username="admin" password="p1"; };
Server { ${DIGEST} required user_admin="p1" user_kafka="p2"; };
QuorumServer { ${DIGEST} required user_zk="p3"; };
QuorumLearner { ${DIGEST} required username="zk" password="p3"; };
`;
const SERVERS = [1, 2, 3].map((id) => `server.${id}=zk${id}.example:2888:3888`).join('\n');

const SETUPS: Readonly<Record<string, string>> = {
  'Confluent, SASL and mutual TLS': `
tickTime=2000
dataDir=/var/lib/zookeeper
clientPort=2181
secureClientPort=2182
initLimit=5
syncLimit=2
maxClientCnxns=0
autopurge.snapRetainCount=3
autopurge.purgeInterval=24
admin.enableServer=false
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider
requireClientAuthScheme=sasl
jaasLoginRenew=3600000
allowSaslFailedClients=false
kerberos.removeHostFromPrincipal=true
kerberos.removeRealmFromPrincipal=true
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location=/etc/zk/keystore.jks
ssl.keyStore.password=changeit
ssl.trustStore.location=/etc/zk/truststore.jks
ssl.trustStore.password=changeit
ssl.clientAuth=need
zookeeper.superUser=super
java.security.auth.login.config=/etc/zk/jaas.conf
${SERVERS}
`,
  'Strimzi, TLS on every port': `
dataDir=/var/lib/zookeeper/data
clientPort=12181
clientPortAddress=127.0.0.1
timeTick=2000
tickTime=2000
initLimit=5
syncLimit=2
standaloneEnabled=false
autopurge.purgeInterval=1
admin.enableServer=false
4lw.commands.whitelist=*
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
secureClientPort=2181
ssl.clientAuth=need
ssl.keyStore.location=/tmp/zookeeper/cluster.keystore.p12
ssl.keyStore.password=changeit
ssl.keyStore.type=PKCS12
ssl.trustStore.location=/tmp/zookeeper/cluster.truststore.p12
ssl.trustStore.password=changeit
ssl.trustStore.type=PKCS12
sslQuorum=true
ssl.quorum.clientAuth=need
ssl.quorum.keyStore.location=/tmp/zookeeper/cluster.keystore.p12
ssl.quorum.keyStore.password=changeit
ssl.quorum.keyStore.type=PKCS12
ssl.quorum.trustStore.location=/tmp/zookeeper/cluster.truststore.p12
ssl.quorum.trustStore.password=changeit
ssl.quorum.trustStore.type=PKCS12
${SERVERS}
`,
  'Bitnami, SASL of clients and servers': `
tickTime=2000
initLimit=10
syncLimit=5
dataDir=/bitnami/zookeeper/data
clientPort=2181
maxClientCnxns=60
maxCnxns=0
autopurge.snapRetainCount=3
autopurge.purgeInterval=0
preAllocSize=65536
snapCount=100000
maxSessionTimeout=40000
standaloneEnabled=true
quorumListenOnAllIPs=false
reconfigEnabled=false
admin.enableServer=true
admin.serverPort=8080
4lw.commands.whitelist=srvr, mntr, ruok
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
requireClientAuthScheme=sasl
quorum.auth.enableSasl=true
quorum.auth.learnerRequireSasl=true
quorum.auth.serverRequireSasl=true
quorum.auth.learner.saslLoginContext=QuorumLearner
quorum.auth.server.saslLoginContext=QuorumServer
quorum.cnxn.threads.size=20
java.security.auth.login.config=/etc/zk/jaas.conf
${SERVERS}
`,
  'Stackable, certificates of clients and servers': `
dataDir=/stackable/data
initLimit=5
syncLimit=2
tickTime=3000
clientPort=2282
client.portUnification=true
admin.serverPort=8080
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider
ssl.hostnameVerification=true
ssl.clientAuth=need
ssl.keyStore.location=/stackable/server_tls/keystore.p12
ssl.keyStore.password=changeit
ssl.trustStore.location=/stackable/server_tls/truststore.p12
ssl.trustStore.password=changeit
sslQuorum=true
ssl.quorum.hostnameVerification=true
ssl.quorum.clientAuth=need
ssl.quorum.keyStore.location=/stackable/quorum_tls/keystore.p12
ssl.quorum.keyStore.password=changeit
ssl.quorum.trustStore.location=/stackable/quorum_tls/truststore.p12
ssl.quorum.trustStore.password=changeit
metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
metricsProvider.httpPort=9505
${SERVERS}
`,
};

function read(text: string): ReadConfiguration {
  return readZooCfg({
    text,
    file: 'zoo.cfg',
    workingDirectory: '/',
    readFile: (path) => (path.endsWith('jaas.conf') ? JAAS : '1'),
  });
}

describe.each(Object.entries(SETUPS))('the configuration of %s', (title, text) => {
  test('is taken as it is', () => {
    const { warnings } = read(text);
    // A misspelt key of Strimzi's own file.
    expect(warnings).toEqual(title.startsWith('Strimzi') ? [expect.stringMatching(/timeTick is unknown/)] : []);
  });

  test('does what it asks for', () => {
    const { server } = read(text);
    const asks = (key: string): boolean => text.includes(`\n${key}`);
    expect(server.auth.sasl.login === null).toBe(!asks('java.security.auth.login.config'));
    expect(server.auth.sasl.isScheme).toBe(asks('authProvider.1=org.apache.zookeeper.server.auth.SASL'));
    expect(server.quorumSasl?.isRequired ?? false).toBe(asks('quorum.auth.serverRequireSasl=true'));
    expect(server.sslQuorum).toBe(asks('sslQuorum=true'));
    expect(server.auth.x509Enabled).toBe(asks('ssl.keyStore.location'));
    expect(server.clientPortUnification).toBe(asks('client.portUnification=true'));
  });
});

test('a set-up with a key of security that is misspelt does not start', () => {
  const text = SETUPS['Bitnami, SASL of clients and servers']!.replace('serverRequireSasl', 'serverRequiresSasl');
  expect(() => read(text)).toThrow(ConfigurationError);
});
