import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { CertificateAuthority } from '../tls/certificate-authority.ts';
import { DEFAULT_TLS_OPTIONS } from '../tls/options.ts';
import { readTlsSettings } from '../tls/tls-settings.ts';
import { NODE_CLOCK } from './clock.ts';
import { type Listener, listen } from './network.ts';
import { Turn } from './turn.ts';

const directory = mkdtempSync(join(tmpdir(), 'socket-stream-'));
const authority = new CertificateAuthority();
const client = authority.issue('client');
const [ONE, TWO, THREE] = [frame('one'), frame('two'), frame('three')];

let listener: Listener;
let turn: Turn;

beforeEach(async () => {
  const write = (name: string, text: string): { path: string; password: string; passwordPath: null } => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return { path, password: '', passwordPath: null };
  };
  const settings = await readTlsSettings(
    {
      ...DEFAULT_TLS_OPTIONS,
      keyStore: write('key.pem', authority.issue('server', { names: ['IP:127.0.0.1'] }).keyStore),
      trustStore: write('trust.pem', authority.certificate),
    },
    Date.now(),
  );
  turn = new Turn(NODE_CLOCK, (error) => {
    throw error;
  });
  let onTurnEnd = (): void => {};
  const core = { onTurnEnd: () => onTurnEnd(), nextDeadlineMs: () => Number.POSITIVE_INFINITY, onTick() {} };
  turn.start(core, { startEffects: () => false });
  listener = await listen(
    {
      host: '127.0.0.1',
      port: 0,
      backlog: -1,
      keepAlive: false,
      traffic: { onBytesReceived() {} },
      tls: {
        settings,
        isUnified: false,
        perHostMax: 0,
        // Opened later, when the first bytes of the client may have arrived.
        checkPeer: () => new Promise((resolve) => setTimeout(resolve, 20, { hosts: null })),
        events: { onHandshakeFailed() {}, onHandshakesExceeded() {} },
      },
    },
    turn,
    (stream) => {
      let received = 0;
      return {
        isAnswering: false,
        onBytes: (chunk) => {
          received += chunk.length;
          if (received < GREETING.length) return;
          onTurnEnd = () => {
            onTurnEnd = () => {};
            stream.write(Buffer.concat([ONE, TWO, THREE]));
          };
        },
        onDrain() {},
        onClosed() {},
      };
    },
    () => {},
  );
});
afterEach(() => {
  listener.destroyAll();
  listener.close();
  turn.stop();
});
afterAll(() => rmSync(directory, { recursive: true }));

const GREETING = frame('a connect request');

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a client whose first record is the length of its connect request gets the last frame in a record of its own (%s)',
  async (version) => {
    const records = await greet([GREETING.subarray(0, 4), GREETING.subarray(4)], version);
    expect(records).toEqual([Buffer.concat([ONE, TWO]), THREE]);
  },
);

test('for other clients one record holds all that there is to send', async () => {
  const records = await greet([GREETING], 'TLSv1.3');
  expect(records).toEqual([Buffer.concat([ONE, TWO, THREE])]);
});

/** Sends these records. @returns those of the answer, which Node.js emits one by one */
async function greet(records: readonly Buffer[], version: 'TLSv1.2' | 'TLSv1.3'): Promise<readonly Buffer[]> {
  const socket = connect({
    port: listener.port,
    host: '127.0.0.1',
    ca: authority.certificate,
    cert: client.certificate,
    key: client.key,
    minVersion: version,
    maxVersion: version,
  });
  await once(socket, 'secureConnect');
  for (const record of records) await new Promise((resolve) => socket.write(record, resolve));
  const received: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  const length = ONE.length + TWO.length + THREE.length;
  while (Buffer.concat(received).length < length) await once(socket, 'data');
  socket.destroy();
  return received;
}

function frame(text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(text.length);
  return Buffer.concat([length, Buffer.from(text)]);
}
