import { KerberosError, type ServiceTicket } from '@meerkat/client/kerberos';
import { describe, expect, test } from 'vitest';
import { authorizePeer } from './quorum-sasl.ts';
import { GssapiPeer, prepareTickets, QuorumTickets } from './quorum-tickets.ts';

describe('a server that has logged in by Kerberos', () => {
  const OWN = 'zkquorum/zk1.example.org@R';
  const HOSTS = ['zk1.example.org', 'ZK2.example.org'];

  test('is the host of its principal, regardless of the name before it', () => {
    expect(authorizePeer('zkquorum/zk2.example.org@R', OWN, HOSTS)).toEqual([
      { scheme: 'host', id: 'ZK2.example.org' },
    ]);
    expect(authorizePeer('learner/ZK1.example.org@R', OWN, HOSTS)).toEqual([{ scheme: 'host', id: 'zk1.example.org' }]);
  });

  // The first is CVE-2023-44981.
  test.each([
    ['eve@R', /names no host/],
    ['zk1.example.org', /names no host/],
    ['a/zk1.example.org/b@R', /names no host/],
    ['zkquorum/zk3.example.org@R', /at none of the hosts of the server.N lines: zk1.example.org, ZK2.example.org/],
    ['zkquorum/@R', /at none of the hosts/],
    ['zkquorum/zk1.example.org@OTHER', /is of another realm than zkquorum\/zk1/],
  ])('is refused as %s', (name, reason) => {
    expect(authorizePeer(name, OWN, HOSTS)).toMatch(reason);
  });
});

test('a ticket that has gone fails the exchange, not the server', () => {
  const options = { keytabPath: null, principal: null, cachePath: '/nowhere', configPath: null };
  const peer = new GssapiPeer(new QuorumTickets({ ...options, servicePrincipal: 'zkquorum/_HOST' }), 'ZK2');
  expect(peer.step(new Uint8Array(0))).toEqual({ kind: 'failure', reason: 'its exchange has not begun' });
  expect(peer.start()).toHaveLength(0);
  expect(peer.step(new Uint8Array(0))).toEqual({
    kind: 'failure',
    reason: 'the ticket for zkquorum/zk2 is gone',
  });
});

test('a rejected ticket is not used again for a server, an accepted one is', async () => {
  const refused: string[] = [];
  const ticket = (service: string): ServiceTicket => ({
    client: 'a@R',
    service,
    ticket: Buffer.from(service),
    sessionKey: { encryptionType: 18, bytes: Buffer.alloc(32) },
    startsMs: 0,
    endsMs: 1,
  });
  const source = {
    get: async (service: string) => ticket(service),
    peek: (service: string) => ticket(service),
    refuse: (service: string) => refused.push(service) > 0,
  };
  const options = { keytabPath: null, principal: null, cachePath: null, configPath: null };
  const tickets = new QuorumTickets({ ...options, servicePrincipal: 'zkquorum/_HOST' }, source);
  for (const host of ['zk2', 'zk3']) {
    await tickets.prepare(host);
    new GssapiPeer(tickets, host).start();
  }
  tickets.onAccepted('zk3');
  for (const host of ['zk2', 'zk3', 'zk2']) await tickets.prepare(host);
  expect(refused).toEqual(['zkquorum/zk2']);
});

test('why there is no ticket is told once for each host, and again when it is something else or was mended', async () => {
  const failures = ['no cache', 'no cache', 'expired', null, 'expired'];
  const reported: string[] = [];
  const prepare = prepareTickets(
    {
      prepare: async (host) => {
        const failure = failures[0] ?? null;
        if (host === 'zk3') failures.shift();
        if (failure !== null) throw new KerberosError(`${failure} for ${host}`);
      },
    },
    (message) => reported.push(message),
  );
  for (let i = 0; i < 5; i++) for (const host of ['zk2', 'zk3']) await prepare(host).catch(() => {});
  expect(reported).toEqual(
    ['no cache', 'expired', 'expired'].flatMap((what) =>
      ['zk2', 'zk3'].map((host) => `cannot log in at the server at ${host}: ${what} for ${host}`),
    ),
  );
});
