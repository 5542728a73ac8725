import { OpCode } from '@meerkat/protocol';
import { describe, expect, test, vi } from 'vitest';
import { type TestClient, TestServer } from '../testing/test-server.ts';

const LINES = 200_000;

/** A server that answers a word with many lines, and a client that sends it. */
function asked(): { server: TestServer; client: TestClient; text: () => string; lines: () => number } {
  const server = new TestServer();
  let lines = 0;
  vi.spyOn(server.fourLetterWords, 'answer').mockImplementation(function* () {
    for (; lines < LINES; lines++) yield `line ${lines}\n`;
  });
  const client = server.open();
  const received: string[] = [];
  const write = client.write.bind(client);
  vi.spyOn(client, 'write').mockImplementation((bytes) => {
    if (client.isDeaf) write(bytes);
    else received.push(Buffer.from(bytes).toString());
  });
  client.sendBytes(Buffer.from('ruok\n'));
  return { server, client, text: () => received.join(''), lines: () => lines };
}

describe('a long answer to a four-letter word', () => {
  test('takes several turns, in which other clients are answered', () => {
    const { server, client, text, lines } = asked();
    server.core.onTurnEnd();
    expect(lines()).toBeGreaterThan(0);
    expect(lines()).toBeLessThan(LINES / 10);
    const other = server.connect();
    other.takeArrivals();
    const before = lines();
    other.send({ op: OpCode.exists, path: '/', watch: false });
    server.core.onTurnEnd();
    expect(other.takeArrivals()).toHaveLength(1);
    expect(lines() - before).toBeLessThan(LINES / 10);
    server.run();
    expect(text()).toBe(Array.from({ length: LINES }, (_, i) => `line ${i}\n`).join(''));
    expect(client.isClosed).toBe(true);
  });

  test('is produced as it is read, and a client that does not read is disconnected', () => {
    const { server, client, lines } = asked();
    client.isDeaf = true;
    server.run();
    const made = lines();
    expect(made).toBeLessThan(LINES);
    server.advance(9000);
    expect(client.isClosed).toBe(false);
    server.advance(9000);
    expect(client.isClosed).toBe(true);
    expect(lines()).toBe(made);
  });

  test('counts as awaited until its end, even if its client sends nothing more', () => {
    const { server, client } = asked();
    expect(client.isAwaiting).toBe(true);
    server.run();
    expect(client.isAwaiting).toBe(false);
  });

  test('is dropped when its client disconnects, and nothing that the client sends meanwhile is read', () => {
    const { server, client, lines } = asked();
    client.sendBytes(Buffer.from('ruok'));
    server.core.onTurnEnd();
    expect(client.isPaused).toBe(true);
    client.drop();
    const made = lines();
    server.run();
    expect(lines()).toBe(made);
    expect(server.core.view.connectionCount).toBe(0);
  });
});
