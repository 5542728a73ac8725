import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_AUTH_OPTIONS } from '../auth/authenticator.ts';
import { KEYS } from './keys.ts';
import { DEFAULT_SERVER_OPTIONS } from './options.ts';
import { parseProperties } from './properties.ts';
import { formatReference } from './reference.ts';
import { ConfigurationError, type ReadConfiguration, readZooCfg } from './zoo-cfg.ts';

/** Keys that are required, some of them only beside others. */
const MAY_BE_MISSING = [
  ...['dataDir', 'clientPort', 'secureClientPort', 'initLimit', 'syncLimit'],
  ...['ssl', 'ssl.quorum'].flatMap((prefix) => [`${prefix}.keyStore.location`, `${prefix}.trustStore.location`]),
];
const REQUIRED = 'dataDir=/data\nclientPort=2181\n';

function read(text: string): ReadConfiguration {
  return readZooCfg({ text, file: 'zoo.cfg', workingDirectory: '/work-dir', readFile: () => '1' });
}

function faultsOf(text: string): string[] {
  try {
    read(text);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message.split('\n');
    throw error;
  }
  return [];
}

describe('properties', () => {
  test('separators, comments, continuations and escapes are those of Java', () => {
    const text = [
      '# comment \\',
      '  ! comment too',
      'a=1',
      'b : 2',
      'c 3',
      'd = one \\',
      '    two',
      'e\\=f = g',
      'empty',
      'u=\\u00e9\\t\\q',
      'even=x\\\\',
      'last',
    ].join('\r\n');
    const { properties, faults } = parseProperties(text);
    expect(faults).toEqual([]);
    expect(properties.map(({ key, value, line }) => [line, key, value])).toEqual([
      [3, 'a', '1'],
      [4, 'b', '2'],
      [5, 'c', '3'],
      [6, 'd', 'one two'],
      [8, 'e=f', 'g'],
      [9, 'empty', ''],
      [10, 'u', 'é\tq'],
      [11, 'even', 'x\\'],
      [12, 'last', ''],
    ]);
  });

  test('a malformed \\u is a fault with its line', () => {
    expect(faultsOf(`${REQUIRED}x=\\u12`)).toEqual([
      'zoo.cfg, line 3: found "\\\\u12", expected \\u and four hexadecimal digits',
    ]);
  });
});

describe('zoo.cfg', () => {
  test("ZooKeeper's sample configuration is read without a warning", () => {
    // conf/zoo_sample.cfg without its comments
    const { core, server, warnings } = read(
      'tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/tmp/zookeeper\nclientPort=2181\n',
    );
    expect(warnings).toEqual([]);
    expect(core).toMatchObject({
      tickTimeMs: 2000,
      sessionTimeoutMinMs: 4000,
      sessionTimeoutMaxMs: 40_000,
      snapshotDirectory: '/tmp/zookeeper/version-2',
      logDirectory: '/tmp/zookeeper/version-2',
    });
    expect(server).toMatchObject({ clientPort: 2181, clientHost: null, dataDirectory: '/tmp/zookeeper' });
  });

  test('every supported key takes effect', () => {
    const { core, server, warnings } = read(`${REQUIRED}
      dataLogDir=logs
      clientPortAddress=[::1]
      clientPortListenBacklog=100
      minSessionTimeout=1000
      maxSessionTimeout=2000
      maxClientCnxns=0
      maxCnxns=7
      nio.sessionlessCnxnTimeout=500
      globalOutstandingLimit=10
       multiRead.maxReplyBytes=1048576
      jute.maxbuffer=0x200000
      zookeeper.jute.maxbuffer.extrasize=0x1000
      4lw.commands.whitelist=stat, ruok
      readonlymode.enabled=true
      skipACL=yes
      enforceQuota=true
      extendedTypesEnabled=TRUE
      emulate353TTLNodes=true
      digest.enabled=false
      znode.container.checkIntervalMs=100
      znode.container.maxPerMinute=5
      znode.container.maxNeverUsedIntervalMs=6
      DigestAuthenticationProvider.digestAlg=SHA-256
      DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=
      snapCount=10
      snapSizeLimitInKb=1
      preAllocSize=64
      txnLogSizeLimitInKb=2
      forceSync=no
      fsync.warningthresholdms=20
      snapshot.compression.method=Snappy
      snapshot.trust.empty=true
      db.autocreate=false
      autopurge.snapRetainCount=5
      autopurge.purgeInterval=2
      datadir.autocreate=false
      tcpKeepAlive=true
      sessions.max=1
      watches.max=2
      session.maxRequestsInFlight=3
      request_throttle_max_requests=4
      throttled_op_wait_time=41
      request_stale_latency_check=true
      request_throttle_drop_stale=false
      largeRequestThreshold=5
      largeRequestMaxBytes=6
      connection_throttle_tokens=7
      connection_throttle_fill_time=8
      connection_throttle_fill_count=9
      connection_throttle_freeze_time=10
      connection_throttle_drop_increase=0.11
      connection_throttle_drop_decrease=0.012
      connection_throttle_decrease_ratio=0.13
      connection_throttle_weight_enabled=true
      connection_throttle_global_session_weight=14
      connection_throttle_renew_session_weight=15
      connection_throttle_local_session_weight=16`);
    expect(warnings).toEqual([]);
    expect(core).toEqual({
      snapshotDirectory: '/data/version-2',
      logDirectory: '/work-dir/logs/version-2',
      serverId: 1,
      tickTimeMs: 3000,
      sessionTimeoutMinMs: 1000,
      sessionTimeoutMaxMs: 2000,
      frameBytesMax: 2_097_152,
      extraBytesMax: 4096,
      globalOutstandingLimit: 10,
      multiReadBytesMax: 1048576,
      limits: {
        sessionsMax: 1,
        watchesMax: 2,
        sessionRequestsMax: 3,
        requestsMax: 4,
        requestWaitMaxMs: 41,
        countsStale: true,
        dropsStale: false,
        largeRequestBytes: 5,
        largeRequestsBytesMax: 6,
        connecting: {
          tokens: 7,
          fillTimeMs: 8,
          fillCount: 9,
          freezeTimeMs: 10,
          dropIncrease: 0.11,
          dropDecrease: 0.012,
          decreaseRatio: 0.13,
          hasWeights: true,
          newSessionTokens: 14,
          renewedSessionTokens: 15,
          localSessionTokens: 16,
        },
      },
      connectionsPerHostMax: 0,
      connectionsMax: 7,
      sessionlessTimeoutMs: 500,
      skipAcl: true,
      reconfigEnabled: false,
      enforceQuota: true,
      extendedTypesEnabled: true,
      emulate353TtlZnodes: true,
      digestEnabled: false,
      containerCheckIntervalMs: 100,
      containerDeletesPerMinuteMax: 5,
      containerNeverUsedMs: 6,
      snapCount: 10,
      snapBytesMax: 1024,
      snapshotCompression: 'snappy',
      preallocateBytes: 65_536,
      logBytesMax: 2048,
      forceSync: false,
      purgeRetainCount: 5,
      purgeIntervalMs: 7_200_000,
      trustEmptySnapshot: true,
      createsDatabase: false,
      syncWarningMs: 20,
      ensemble: null,
    });
    expect(server).toEqual({
      ...DEFAULT_SERVER_OPTIONS,
      admin: expect.objectContaining({ port: 8080 }),
      dataDirectory: '/data',
      staticFile: '/work-dir/zoo.cfg',
      dataLogDirectory: '/work-dir/logs',
      createsDirectories: false,
      clientPort: 2181,
      clientHost: '::1',
      listenBacklog: 100,
      tcpKeepAlive: true,
      quorumListensOnAllIps: false,
      auth: {
        ...DEFAULT_AUTH_OPTIONS,
        digestEnabled: true,
        digestAlgorithm: 'sha256',
        superDigest: 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=',
        unknownProviders: [],
      },
      fourLetterWordsAllowed: ['stat', 'ruok'],
      readOnlyModeEnabled: true,
    });
  });

  test('snapshots are compressed by a method that is known, or not', () => {
    expect(read(`${REQUIRED}snapshot.compression.method=`).core.snapshotCompression).toBeNull();
    expect(read(`${REQUIRED}zookeeper.snapshot.compression.method=gz`).core.snapshotCompression).toBe('gz');
    expect(faultsOf(`${REQUIRED}snapshot.compression.method=zstd`)).toEqual([
      'zoo.cfg, line 3: snapshot.compression.method: found "zstd", expected gz, snappy or nothing',
    ]);
  });

  test('the prefix of system properties may stand before a key or not', () => {
    expect(read(`${REQUIRED}zookeeper.snapCount=50`).core.snapCount).toBe(50);
    expect(read(`${REQUIRED}zookeeper.DigestAuthenticationProvider.enabled=false`).server.auth.digestEnabled).toBe(
      false,
    );
  });

  test('the purge interval takes a unit, hours by default', () => {
    const intervalOf = (text: string): number =>
      read(`${REQUIRED}autopurge.purgeInterval=${text}`).core.purgeIntervalMs;
    expect(['24', '500ms', '30s', '5m', '1h', '2d'].map(intervalOf)).toEqual([
      86_400_000, 500, 30_000, 300_000, 3_600_000, 172_800_000,
    ]);
  });

  test('numbers that ZooKeeper raises to a minimum are raised, with a warning', () => {
    const { core, warnings } = read(`${REQUIRED}snapCount=1\nautopurge.snapRetainCount=1`);
    expect([core.snapCount, core.purgeRetainCount]).toEqual([2, 3]);
    expect(warnings).toEqual([
      'zoo.cfg, line 3: snapCount 1 is too small; 2 is used',
      'zoo.cfg, line 4: autopurge.snapRetainCount 1 is too small; 3 is used',
    ]);
  });

  test('unknown, misspelt and repeated keys are warned about with their line', () => {
    const { warnings, core } = read(
      `${REQUIRED}frobnicate=1\nticktime=5\nmetricsProvider.threads=1\nsnapCount=5\nsnapCount=6`,
    );
    expect(core.snapCount).toBe(6);
    expect(warnings).toEqual([
      'zoo.cfg, line 6: snapCount is overridden by line 7',
      'zoo.cfg, line 3: frobnicate is unknown and ignored',
      'zoo.cfg, line 4: ticktime is unknown and ignored; is tickTime meant?',
      'zoo.cfg, line 5: metricsProvider.threads is unknown and ignored',
    ]);
  });

  test('an admin port is open on loopback unless the file says otherwise, and one for Prometheus if it asks for it', () => {
    expect(read(REQUIRED).server).toMatchObject({ admin: { host: '127.0.0.1', port: 8080 }, metricsPort: null });
    expect(read(`${REQUIRED}admin.enableServer=false`).server.admin).toBeNull();
    const provider = 'org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider';
    const { server } = read(`${REQUIRED}metricsProvider.className=${provider}\nmetricsProvider.httpHost=0.0.0.0`);
    expect(server.metricsPort).toEqual({ host: '0.0.0.0', port: 7000, secure: null });
    expect(faultsOf(`${REQUIRED}metricsProvider.className=com.example.Mine`)).toHaveLength(1);
  });

  test('secrets are masked in the file as shown by the admin port, in any notation', () => {
    const secrets =
      '#ssl.quorum.keyStore.password=hush\n  ! superDigest was super:abc\nssl.keyStore.password=hu\\\nsh\nDigestAuthenticationProvider.superDigest : super:abc\n  ssl.trustStore.passwordPath\thush\n';
    const text = read(`${REQUIRED}# a comment\n${secrets}snapCount=7\n`).server.admin?.configurationText ?? '';
    expect(text).not.toMatch(/hu|sh\b|abc/);
    expect(text).toContain(
      'ssl.keyStore.password=***\n\nDigestAuthenticationProvider.superDigest=***\nssl.trustStore.passwordPath=***\nsnapCount=7\n',
    );
    expect(read(`${REQUIRED}snapCount=7\n`).server.admin?.configurationText).toBe(`${REQUIRED}snapCount=7\n`);
  });

  test('values of security keys that require nothing cause no warning', () => {
    const { warnings } = read(
      `${REQUIRED}admin.enableServer=false\nsslQuorum=false\nenforce.auth.enabled=False\nclient.portUnification=false
      authProvider.1=org.apache.zookeeper.server.auth.DigestAuthenticationProvider\nquorum.auth.enableSasl=false`,
    );
    expect(warnings).toEqual([]);
  });

  test('a provider of authentication that is not known is warned about and ignored, one of Apache that is missing is not', () => {
    const { warnings, server } = read(`${REQUIRED}authProvider.1=com.example.Badge\nauthProvider.2=com.example.Other`);
    expect(warnings).toEqual([
      'zoo.cfg, line 3: authProvider.1 names the class com.example.Badge, which this server does not have: it is ignored',
      'zoo.cfg, line 4: authProvider.2 names the class com.example.Other, which this server does not have: it is ignored',
    ]);
    expect(server.auth.unknownProviders).toEqual(['com.example.Badge', 'com.example.Other']);
  });

  test.each(['ssl.ocsp=true', 'ssl.somethingNew=true', 'ssl.quorum.ocsp=true', 'quorum.auth.somethingNew=true'])(
    'a key about security that is not supported stops the start: %s',
    (line) => {
      const [fault, ...others] = faultsOf(REQUIRED + line);
      expect(others).toEqual([]);
      expect(fault).toContain(`zoo.cfg, line 3: ${line.slice(0, line.indexOf('='))}: found`);
      expect(fault).toContain('less safe');
    },
  );

  test('a wrong value stops with file, line, key, found and expected, all of them at once', () => {
    expect(faultsOf('dataDir=/data\nclientPort=70000\ntickTime=2s\nskipACL=true\n\ndigest.enabled=yes')).toEqual([
      'zoo.cfg, line 2: clientPort: found "70000", expected a whole number from 0 to 65535',
      'zoo.cfg, line 3: tickTime: found "2s", expected a whole number from 1 to 2147483647 (ms)',
      'zoo.cfg, line 4: skipACL: found "true", expected yes or no',
      'zoo.cfg, line 6: digest.enabled: found "yes", expected true or false',
    ]);
  });

  test('what is missing is named with an example', () => {
    expect(faultsOf('')).toEqual([
      'zoo.cfg: dataDir: found "no such line", expected a line such as dataDir=/path/to/data',
      'zoo.cfg: clientPort: found "no such line", expected a line such as clientPort=2181',
    ]);
  });

  test('the shortest session timeout must not be longer than the longest', () => {
    expect(faultsOf(`${REQUIRED}minSessionTimeout=100000`)).toEqual([
      'zoo.cfg, line 3: minSessionTimeout: found "minSessionTimeout 100000 and maxSessionTimeout 60000 with tickTime 3000", expected minSessionTimeout ≤ maxSessionTimeout',
    ]);
  });

  test('one server line is a server on its own, and may say where clients connect', () => {
    expect(read(`${REQUIRED}server.1=a:2888:3888`).server.clientPort).toBe(2181);
    const { server } = read('dataDir=/data\nserver.1=a:2888:3888:participant;127.0.0.1:2190');
    expect(server).toMatchObject({ clientPort: 2190, clientHost: '127.0.0.1' });
  });

  test('garbage is read or refused with file and line, and nothing else happens', () => {
    const names = KEYS.map((key) => key.name.replace('*', 'x'));
    const line = fc.tuple(
      fc.oneof(fc.constantFrom(...names), fc.string()),
      fc.constantFrom('=', ':', ' ', '\\'),
      fc.string({ unit: 'binary' }),
    );
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(line).map((lines) => lines.map((parts) => parts.join('')).join('\n')),
    );
    fc.assert(
      fc.property(text, (garbage) => {
        try {
          for (const warning of read(garbage).warnings) expect(warning).toMatch(/^zoo\.cfg, line \d+: /);
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigurationError);
          if (!(error instanceof ConfigurationError)) return;
          const lineCount = garbage.split(/\r\n|\n|\r/).length;
          for (const fault of error.faults) {
            // The other files say "1", which lists no members.
            if (fault.file !== 'zoo.cfg') continue;
            if (fault.line === null) expect(MAY_BE_MISSING).toContain(fault.key);
            else expect(fault.line).toSatisfy((at: number) => at >= 1 && at <= lineCount);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test('the page of keys is the one that the table makes', async () => {
    await expect(formatReference()).toMatchFileSnapshot('../../../../docs/configuration.md');
  });
});
