/*
 * The configuration files that well-known packagings of ZooKeeper write for their secured set-ups, and test suites for their servers, shortened to the keys that
 * matter. What they pass to Java on its command line (-D…) stands in the file here.
 */

const DIGEST = 'org.apache.zookeeper.server.auth.DigestLoginModule';
export const FOREIGN_JAAS: string = `
Client { ${DIGEST} required username="admin" password="p1"; };
Server { ${DIGEST} required user_admin="p1" user_kafka="p2"; };
QuorumServer { ${DIGEST} required user_zk="p3"; };
QuorumLearner { ${DIGEST} required username="zk" password="p3"; };
`;
const SERVERS = [1, 2, 3].map((id) => `server.${id}=zk${id}.example:2888:3888`).join('\n');

export const FOREIGN_SETUPS: Readonly<Record<string, string>> = {
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
  "kazoo's test suite": `
tickTime=2000
dataDir=/tmp/kazoo/data
clientPort=20000
maxClientCnxns=0
admin.serverPort=20003
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
4lw.commands.whitelist=*
initLimit=4
syncLimit=2
${SERVERS}
peerType=participant
java.security.auth.login.config=/etc/zk/jaas.conf
readonlymode.enabled=true
reconfigEnabled=true
zookeeper.DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=
`,
  "the C client's test suite": `
tickTime=500
initLimit=10
syncLimit=5
dataDir=/tmp/zkdata
clientPort=22181
secureClientPort=22281
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location=/tmp/certs/server.jks
ssl.keyStore.password=password
ssl.trustStore.location=/tmp/certs/servertrust.jks
ssl.trustStore.password=password
extendedTypesEnabled=true
znode.container.checkIntervalMs=100
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
java.security.auth.login.config=/etc/zk/jaas.conf
`,
};
