import { describe, expect, test } from 'vitest';
import { readJvmFlags } from './jvm-flags.ts';
import { type ReadConfiguration, readZooCfg } from './zoo-cfg.ts';

const JAAS = 'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="p"; };';

function read(text: string, environment: Record<string, string>): ReadConfiguration {
  return readZooCfg({
    text: `dataDir=/data\nclientPort=2181\n${text}`,
    file: 'zoo.cfg',
    workingDirectory: '/',
    systemProperties: readJvmFlags(environment),
    readFile(path) {
      if (path === '/etc/zk/jaas.conf') return JAAS;
      throw new Error(`there is no file ${path}`);
    },
  });
}

describe("Java's flags", () => {
  test('are taken for lines of zoo.cfg, and what is meant for Java alone is skipped', () => {
    const { core, server, warnings } = read('', {
      SERVER_JVMFLAGS: '-Xmx1g -Djute.maxbuffer=4194304  -Dcom.sun.management.jmxremote=true',
      JVMFLAGS: '-Dzookeeper.extendedTypesEnabled=true -Dfile.encoding=UTF-8 -Dserver.port=8080 -DdataDir=/tmp',
      KAFKA_OPTS: '-Djava.security.auth.login.config=/etc/zk/jaas.conf',
    });
    expect(server.dataDirectory).toBe('/data');
    expect(core.frameBytesMax).toBe(4_194_304);
    expect(core.extendedTypesEnabled).toBe(true);
    expect(server.auth.sasl.login).not.toBeNull();
    expect(warnings).toEqual([]);
  });

  test('are taken without "zookeeper." where Apache\'s server does', () => {
    const flags = '-Dreadonlymode.enabled=true -Dznode.container.checkIntervalMs=100 -Dfsync.warningthresholdms=20';
    const unknown = '-Dznode.container.color=red';
    const { core, server, warnings } = read('', { SERVER_JVMFLAGS: `${flags} ${unknown}` });
    expect(server.readOnlyModeEnabled).toBe(true);
    expect(core.containerCheckIntervalMs).toBe(100);
    expect(core.syncWarningMs).toBe(20);
    expect(warnings).toEqual([]);
  });

  test('are overridden by the file, and by a later variable', () => {
    const flags = { SERVER_JVMFLAGS: '-Djute.maxbuffer=1000000', JVMFLAGS: '-Djute.maxbuffer=2000000' };
    expect(read('', flags).core.frameBytesMax).toBe(2_000_000);
    const { core, warnings } = read('jute.maxbuffer=3000000', flags);
    expect(core.frameBytesMax).toBe(3_000_000);
    expect(warnings).toEqual([
      'SERVER_JVMFLAGS: jute.maxbuffer is overridden by JVMFLAGS',
      'JVMFLAGS: jute.maxbuffer is overridden by line 3',
    ]);
  });

  test('of ZooKeeper that are unknown are warned about, and wrong ones stop the start, by the name of the variable', () => {
    expect(read('', { JVMFLAGS: '-Dzookeeper.ExtendedTypesEnabled=true' }).warnings).toEqual([
      'JVMFLAGS: zookeeper.ExtendedTypesEnabled is unknown and ignored; is extendedTypesEnabled meant?',
    ]);
    expect(() => read('', { KAFKA_OPTS: '-Djute.maxbuffer=much' })).toThrow(
      /^KAFKA_OPTS: jute\.maxbuffer: found "much", expected/,
    );
    const noFile = { JVMFLAGS: '-Djava.security.auth.login.config=/etc/none.conf' };
    expect(() => read('', noFile)).toThrow(/JVMFLAGS: java\.security\.auth\.login\.config/);
  });

  test('without a value are empty, as in Java', () => {
    expect(readJvmFlags({ JVMFLAGS: '-Dzookeeper.a -Dzookeeper.b= -D' })).toEqual([
      { key: 'zookeeper.a', value: '', line: null, origin: 'JVMFLAGS' },
      { key: 'zookeeper.b', value: '', line: null, origin: 'JVMFLAGS' },
    ]);
  });
});
