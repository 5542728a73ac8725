import { CreateMode, JuteReader, OPEN_ACL, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { type TestClient, TestServer } from '../testing/test-server.ts';

const ephemeral = (path: string): Request => ({
  op: OpCode.create,
  path,
  data: null,
  acl: OPEN_ACL,
  flags: CreateMode.ephemeral,
  ttl: -1,
});

/** The texts of a reply's vector. */
function textsOf(client: TestClient): string[] {
  const [reply] = client.takeArrivals();
  if (reply?.kind !== 'reply') throw new Error('no reply came');
  const reader = new JuteReader(reply.body);
  return Array.from({ length: reader.int() }, () => reader.ustring() ?? '');
}

describe('getEphemerals', () => {
  test('tells all when nothing or a "/" is left of the prefix without blanks, as Java trims', () => {
    const server = new TestServer();
    const client = server.connect();
    for (const path of ['/a', '/b']) client.send(ephemeral(path));
    server.run();
    client.takeArrivals();
    const ask = (prefix: string | null): string[] => {
      client.send({ op: OpCode.getEphemerals, prefix });
      server.run();
      return textsOf(client).sort();
    };
    for (const all of [null, '', ' ', '/', ' /', '/ ', '\t/\r\n', '\0', '\x01 /\x1f']) {
      expect(ask(all), JSON.stringify(all)).toEqual(['/a', '/b']);
    }
    // Only what means all is trimmed, and only what Java takes for blank.
    for (const none of [
      ' /a',
      '/a ',
      'a',
      '//',
      '/ /',
      '\u00a0',
      '\u3000',
      '\u0085',
      '\ufeff/',
      `${' '.repeat(1000)}x`,
    ]) {
      expect(ask(none), JSON.stringify(none)).toEqual([]);
    }
    expect(ask('/b')).toEqual(['/b']);
  });
});
