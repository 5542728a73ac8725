import { describe, expect, test } from 'vitest';
import { parseConnectString, parseServer } from './connect-string.ts';
import { BadArgumentsError } from './errors.ts';

describe('a connect string', () => {
  test.each([
    ['zk1:2182', [{ host: 'zk1', port: 2182 }], ''],
    ['zk1', [{ host: 'zk1', port: 2181 }], ''],
    ['10.0.0.1:2181,10.0.0.2', [hostPort('10.0.0.1'), hostPort('10.0.0.2')], ''],
    ['zk1:2181,zk2:2182/app/blue', [hostPort('zk1'), { host: 'zk2', port: 2182 }], '/app/blue'],
    ['[::1]:2182,[fe80::1%eth0]/app', [{ host: '::1', port: 2182 }, hostPort('fe80::1%eth0')], '/app'],
    [' zk1 , zk2:2181 ', [hostPort('zk1'), hostPort('zk2')], ''],
    ['zk1,,zk2,', [hostPort('zk1'), hostPort('zk2')], ''],
    ['zk1/', [hostPort('zk1')], ''],
    ['zk1/a,b', [hostPort('zk1')], '/a,b'],
  ])('reads %j', (text, hosts, chroot) => {
    expect(parseConnectString(text)).toEqual({ hosts, chroot });
  });

  test('may be a list, of strings and of pairs', () => {
    expect(parseConnectString(['zk1', { host: '::1', port: 2182 }, '[::1]'], '/app')).toEqual({
      hosts: [hostPort('zk1'), { host: '::1', port: 2182 }, hostPort('::1')],
      chroot: '/app',
    });
  });

  test('appends the chroot of the options to its own', () => {
    expect(parseConnectString('zk1/app', '/blue').chroot).toBe('/app/blue');
    expect(parseConnectString('zk1/app', '/').chroot).toBe('/app');
  });

  test.each([
    ['', 'names no server'],
    [' , ', 'names no server'],
    ['/app', 'names no server'],
    ['zk1:', '"zk1:": the port is "", not a number from 1 to 65535'],
    ['zk1:0', 'the port is "0"'],
    ['zk1:65536', 'the port is "65536"'],
    ['zk1:client', 'the port is "client"'],
    ['zk1:2181;zk2:2181', 'has several colons'],
    ['zk1:2181:2182', '"zk1:2181:2182" has several colons'],
    ['zk1:2181,:2181', '"" is no name'],
    ['zk 1', '"zk 1" is no name'],
    ['user@zk1', '"user@zk1" is no name'],
    [`${'a'.repeat(256)}:2181`, 'is no name'],
    ['[zk1]:2181', '"zk1" is no IPv6 address'],
    ['[::1]2181', '"[::1]2181" has several colons'],
    ['zk1:2181/app,zk2:2181/app', '"zk2:2181" stands behind the chroot'],
    ['zk://zk1:2181', 'begins with "zk://"'],
    ['dns-srv://zookeeper.example', 'begins with "dns-srv://"'],
    ['zk1//app', '//app'],
    ['zk1/app/', '/app/'],
  ])('says what is wrong with %j', (text, part) => {
    const parse = (): unknown => parseConnectString(text);
    expect(parse).toThrow(BadArgumentsError);
    expect(parse).toThrow(part);
  });

  test('that is missing is reported as such', () => {
    expect(() => parseConnectString(undefined as unknown as string)).toThrow('the servers are undefined');
    expect(() => parseConnectString([])).toThrow('names no server');
  });
});

describe('an IPv6 address', () => {
  test('needs no brackets where its last group cannot be a port', () => {
    expect(parseServer('::1')).toEqual(hostPort('::1'));
    expect(parseServer('2001:db8:0:0:0:0:0:1')).toEqual(hostPort('2001:db8:0:0:0:0:0:1'));
  });

  test('that is ambiguous is refused, with the forms to use', () => {
    expect(() => parseServer('fe80::1:2181')).toThrow('[fe80::1]:2181');
    expect(() => parseServer('2001:db8:0:0:0:0:0:1:2181')).toThrow('[2001:db8:0:0:0:0:0:1]:2181');
  });
});

function hostPort(host: string): { host: string; port: number } {
  return { host, port: 2181 };
}
