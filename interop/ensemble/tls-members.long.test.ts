import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { connect } from '@meerkat/client';
import type { TraceEvent } from '@meerkat/core';
import { CertificateAuthority, type RunningServer, readZooCfg, startServer } from '@meerkat/server';
import { findFreePorts } from '@meerkat/testing';
import { afterAll, expect, test } from 'vitest';
import { followerInfo, notification } from './raw-peer.ts';

const directory = mkdtempSync(join(tmpdir(), 'tls-members-'));
const authority = new CertificateAuthority();
const servers = new Map<number, RunningServer>();
/** Reasons of refused connections, by server. */
const refusals = new Map<number, string[]>();
const PATIENCE = { timeout: 60_000 };
writeFileSync(join(directory, 'ca.pem'), authority.certificate);

afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.stop()));
  rmSync(directory, { recursive: true });
});

/** Each server has its own host, and a certificate for that host only. */
const hostOf = (id: number): string => `127.0.0.${id}`;
const certificateOf = (id: number) => authority.issue(`zk${id}`, { names: [`IP:${hostOf(id)}`] });

async function start(id: number, members: readonly string[]): Promise<RunningServer> {
  const data = join(directory, String(id));
  mkdirSync(data);
  writeFileSync(join(data, 'myid'), String(id));
  writeFileSync(join(data, 'key.pem'), certificateOf(id).keyStore);
  writeFileSync(join(data, 'members.cfg'), `${members.join('\n')}\n`);
  const text = `
dataDir=${data}
tickTime=500
initLimit=20
syncLimit=10
admin.enableServer=false
skipACL=yes
reconfigEnabled=true
standaloneEnabled=false
sslQuorum=true
ssl.quorum.keyStore.location=${data}/key.pem
ssl.quorum.trustStore.location=${directory}/ca.pem
dynamicConfigFile=${data}/members.cfg
`;
  const zooCfg = join(data, 'zoo.cfg');
  writeFileSync(zooCfg, text);
  const messages: string[] = [];
  refusals.set(id, messages);
  const emit = (event: TraceEvent): void => {
    if (event.kind === 'connection-refused' || event.kind === 'learner-closed') messages.push(event.reason);
  };
  const server = await startServer(readZooCfg({ text, file: zooCfg, workingDirectory: data }), { trace: { emit } });
  servers.set(id, server);
  return server;
}

/** Sends bytes as a server with this certificate. */
function say(id: number, port: number, host: string, bytes: Uint8Array): TLSSocket {
  const { certificate: cert, key } = certificateOf(id);
  const socket = connectTls({ host, port, cert, key, ca: authority.certificate, checkServerIdentity: () => undefined });
  socket.on('error', () => {});
  socket.on('data', () => {});
  socket.write(bytes);
  return socket;
}

test('a server is accepted only as the member in its certificate; a new one needs no restart of others', async () => {
  const ports = await findFreePorts(12);
  const lineOf = (id: number): string => {
    const [quorum, election, client] = ports.slice(3 * id - 3);
    return `server.${id}=${hostOf(id)}:${quorum}:${election}:participant;127.0.0.1:${client}`;
  };
  const lines = [1, 2, 3].map(lineOf);
  const three = await Promise.all([1, 2, 3].map((id) => start(id, lines)));
  await Promise.all(three.map((server) => server.serving));
  const view = three[0]!.view.ensemble!;
  const leader = view.leader!;
  const quorumPort = ports[3 * leader - 3]!;
  const messages = refusals.get(leader)!;

  // As one follower with the certificate of the other, on both ports of the leader; and as itself, which is accepted.
  const [one, other] = [1, 2, 3].filter((id) => id !== leader) as [number, number];
  const lie = `it claims to be server ${other}, and has proved to be ${hostOf(one)}, not ${hostOf(other)}`;
  say(one, quorumPort, hostOf(leader), followerInfo({ serverId: other, acceptedEpoch: 1 }));
  await expect.poll(() => messages, PATIENCE).toContainEqual(expect.stringContaining(lie));
  const vote = { state: 'looking', leader: other, zxid: 0n, round: 99n, peerEpoch: 1n } as const;
  say(one, ports[3 * leader - 2]!, hostOf(leader), notification(other, vote));
  await expect.poll(() => messages, PATIENCE).toContainEqual(expect.stringContaining(`on the election port: ${lie}`));

  // Server 4 is a stranger until it is a member.
  const fourth = start(4, [...lines, lineOf(4)]);
  const isStranger = expect.stringContaining('names no member of the ensemble: 127.0.0.1, 127.0.0.2, 127.0.0.3');
  await expect.poll(() => [...refusals.values()].flat(), PATIENCE).toContainEqual(isStranger);
  await using client = await connect(`127.0.0.1:${ports[2]}`, { sessionTimeoutMs: 20_000 });
  await client.create('/before', 'x');
  await client.reconfig({ joining: [lineOf(4)] });
  await (await fourth).serving;
  await using ofFourth = await connect(`127.0.0.1:${ports[11]}`, { sessionTimeoutMs: 20_000 });
  await ofFourth.sync();
  expect(await ofFourth.exists('/before')).not.toBeNull();
  expect(three.every((server) => server.view.ensemble?.leader === leader)).toBe(true);
});
