import { expect, test } from 'vitest';
import type { TlsSettings } from '../../tls/tls-settings.ts';
import type { ThreadPort, ToThread } from './messages.ts';
import { ThreadedListener } from './threaded-listener.ts';

const PORT: ThreadPort = { host: null, port: 0, backlog: -1, keepAlive: false, number: 0, isShared: false, tls: null };
const EVENTS = { onStream: () => ({ onBytes() {}, onDrain() {}, onClosed() {} }), tls: null };

test('a certificate that is renewed while a thread begins to listen reaches it once it listens', () => {
  const messages: ToThread[] = [];
  const place = { send: (message: ToThread) => messages.push(message), mark() {}, handshakes: () => 0 };
  const settings = { contextOptions: { cert: 'old' } } as unknown as TlsSettings;
  const listener = new ThreadedListener({ ...PORT, tls: { settings, isUnified: false, perHostMax: 0 } }, EVENTS, place);
  void listener.listenIn(0, () => {});
  listener.renew({ contextOptions: { cert: 'new' } } as unknown as TlsSettings);
  messages.length = 0;
  listener.onMessage(0, { kind: 'listening', port: 0, at: { host: '127.0.0.1', port: 4711 } });
  expect(messages).toEqual([{ kind: 'renew', port: 0, settings: { contextOptions: { cert: 'new' } } }]);
  void listener.listenIn(1, () => {});
  messages.length = 0;
  listener.onMessage(1, { kind: 'listening', port: 0, at: { host: '127.0.0.1', port: 4711 } });
  expect(messages).toEqual([]);
});
