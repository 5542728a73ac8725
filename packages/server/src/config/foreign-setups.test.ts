import { describe, expect, test } from 'vitest';
import { FOREIGN_JAAS, FOREIGN_SETUPS } from './testing/foreign-setups.ts';
import { ConfigurationError, type ReadConfiguration, readZooCfg } from './zoo-cfg.ts';

function read(text: string): ReadConfiguration {
  return readZooCfg({
    text,
    file: 'zoo.cfg',
    workingDirectory: '/',
    readFile: (path) => (path.endsWith('jaas.conf') ? FOREIGN_JAAS : '1'),
  });
}

describe.each(Object.entries(FOREIGN_SETUPS))('the configuration of %s', (title, text) => {
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
  const text = FOREIGN_SETUPS['Bitnami, SASL of clients and servers']!.replace(
    'serverRequireSasl',
    'serverRequiresSasl',
  );
  expect(() => read(text)).toThrow(ConfigurationError);
});
