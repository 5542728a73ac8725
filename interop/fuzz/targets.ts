import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { CertificateAuthority } from '@meerkat/server';
import type { Random } from '../differential/random.ts';
import { type Config, Ensemble } from '../ensemble/ensemble.ts';
import { followerInfo, notification, observerInfo } from '../ensemble/raw-peer.ts';
import { connectRequest, Op } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import { fourLetterWord, ServerProcess } from '../harness/server-process.ts';
import { digestResponse, format } from '../sasl/digest-response.ts';
import {
  CLIENT_CORPUS,
  type Corpus,
  ELECTION_CORPUS,
  electionHello,
  packet,
  QUORUM_CORPUS,
  saslPacket,
} from './frames.ts';

export type FuzzPort = 'client' | 'election' | 'quorum';

/** An attacked port, and the servers behind it. */
export interface Target {
  readonly servers: readonly ServerProcess[];
  readonly corpus: Corpus;
  /** Port for the well-behaved client. */
  readonly clientPort: number;
  /** Opens a connection and advances it to a random stage of the protocol. */
  begin(random: Random): Promise<Socket>;
  dispose(): Promise<void>;
}

const USER = { username: 'zk', password: 'a long password' };
const PEER_REALM = 'zk-quorum-sasl-md5';

export function startTarget(port: FuzzPort, withTls: boolean): Promise<Target> {
  return port === 'client' ? startClientTarget(withTls) : startPeerTarget(port, withTls);
}

/* ------------------------------------------------------------------------------------------------- client ---- */

const CLIENT_STAGES = ['nothing', 'session', 'digest', 'sasl begun', 'sasl done'] as const;

async function startClientTarget(withTls: boolean): Promise<Target> {
  const stores = withTls ? new Stores() : null;
  const server = await ServerProcess.start('meerkat', {
    saslUsers: { [USER.username]: USER.password },
    config: { minSessionTimeout: 1000, tickTime: 500 },
    ...(stores === null ? {} : { tls: { keyStorePath: stores.keyStore, trustStorePath: stores.trustStore } }),
  });
  return {
    servers: [server],
    corpus: CLIENT_CORPUS,
    clientPort: server.port,
    async begin(random) {
      const socket = await open(stores === null ? server.port : server.securePort, stores, random);
      const stage = random.pick(CLIENT_STAGES);
      if (stage === 'nothing') return socket;
      socket.write(framed(connectRequest({ timeoutMs: 1000 })));
      if (stage === 'digest') {
        socket.write(framed(record().int(-4).int(Op.auth).int(0).ustring('digest').buffer('ann:x').build()));
      }
      if (stage.startsWith('sasl')) socket.write(framed(record().int(1).int(Op.sasl).buffer('').build()));
      if (stage === 'sasl done') {
        const nonce = await challenge(socket);
        const answer = format(digestResponse({ ...USER, nonce }));
        socket.write(framed(record().int(2).int(Op.sasl).buffer(answer).build()));
      }
      return socket;
    },
    async dispose() {
      await server.dispose();
      stores?.dispose();
    },
  };
}

function framed(frame: Buffer): Buffer {
  return record().buffer(frame).build();
}

/* ------------------------------------------------------------------------------------------------ servers ---- */

const PEER_STAGES = ['nothing', 'sasl begun', 'sasl done', 'greeted', 'joined'] as const;

/** Three servers with passwords between them. Some attackers know the password. */
async function startPeerTarget(port: 'election' | 'quorum', withTls: boolean): Promise<Target> {
  const stores = withTls ? new Stores() : null;
  const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
  const login = `username="${USER.username}" password="${USER.password}"`;
  const jaas = `
QuorumServer { ${module} user_${USER.username}="${USER.password}"; };
QuorumLearner { ${module} ${login}; };
`;
  const config: Config = {
    // A follower that is silent for a tick may be displaced by an attacker who knows the password.
    tickTime: 2000,
    'quorum.auth.enableSasl': true,
    'quorum.auth.learnerRequireSasl': true,
    'quorum.auth.serverRequireSasl': true,
    ...(stores?.quorumConfig ?? {}),
  };
  const place = { kind: 'meerkat', jaas } as const;
  const ensemble = await Ensemble.start([place, place, place], config);
  let leader = await ensemble.leader();
  let epoch = 1;
  const look = async (): Promise<void> => {
    leader = await ensemble.leader();
    const srvr = await fourLetterWord(leader.server.port, 'srvr').catch(() => '');
    epoch = Number(BigInt(/^Zxid: (0x\w+)$/m.exec(srvr)?.[1] ?? '0x100000000') >> 32n);
  };
  await look();
  let begun = 0;
  return {
    servers: ensemble.members.map(({ server }) => server),
    corpus: port === 'quorum' ? QUORUM_CORPUS : ELECTION_CORPUS,
    clientPort: leader.server.port,
    async begin(random) {
      // The leader may have changed.
      if (++begun % 500 === 0) await look();
      const member = port === 'quorum' ? leader : random.pick(ensemble.members);
      const socket = await open(port === 'quorum' ? member.quorumPort : member.electionPort, stores, random);
      const stage = random.pick(PEER_STAGES);
      if (stage === 'nothing') return socket;
      const serverId = random.pick([1, 2, 3, 9]);
      if (port === 'election') socket.write(electionHello(serverId));
      socket.write(saslPacket(0, ''));
      if (stage === 'sasl begun') return socket;
      const nonce = await challenge(socket);
      const digestUri = `zookeeper-quorum/${PEER_REALM}`;
      socket.write(saslPacket(0, format(digestResponse({ ...USER, nonce, digestUri, realm: PEER_REALM }))));
      if (stage === 'sasl done') return socket;
      if (port === 'election') {
        const vote = { state: 'looking', leader: serverId, zxid: 0n, round: 1n, peerEpoch: 1n } as const;
        socket.write(notification(serverId, vote).subarray(electionHello(serverId).length));
        return socket;
      }
      const pretence = { serverId, acceptedEpoch: epoch };
      socket.write(random.oneIn(2) ? followerInfo(pretence) : observerInfo(pretence));
      if (stage === 'joined') {
        socket.write(packet(ACK_EPOCH, 0n, record().int(epoch).build()));
        socket.write(packet(ACK, BigInt(epoch) << 32n, null));
      }
      return socket;
    },
    async dispose() {
      await ensemble.dispose();
      stores?.dispose();
    },
  };
}

const ACK = 3;
const ACK_EPOCH = 18;

/* ------------------------------------------------------------------------------------------------ sockets ---- */

/** Certificates for both sides, in files. */
class Stores {
  readonly #directory = mkdtempSync(join(tmpdir(), 'fuzz-tls-'));
  readonly keyStore = join(this.#directory, 'key.pem');
  readonly trustStore = join(this.#directory, 'ca.pem');
  /** Shared by all connections, because reading key and certificates costs as much as a handshake. */
  readonly context: SecureContext;
  /** By port: the TLS session of an earlier connection, to resume. That halves the work of both sides. */
  readonly sessions = new Map<number, Buffer>();

  constructor() {
    const authority = new CertificateAuthority();
    const { key, certificate, keyStore } = authority.issue('member', { names: ['IP:127.0.0.1', 'DNS:localhost'] });
    writeFileSync(this.keyStore, keyStore);
    writeFileSync(this.trustStore, authority.certificate);
    this.context = createSecureContext({ key, cert: certificate, ca: authority.certificate });
  }

  get quorumConfig(): Config {
    return {
      sslQuorum: true,
      'ssl.quorum.keyStore.location': this.keyStore,
      'ssl.quorum.trustStore.location': this.trustStore,
    };
  }

  dispose(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** With TLS, one in sixteen connections only starts a handshake; one in four of the others resumes no session. */
async function open(port: number, stores: Stores | null, random: Random): Promise<Socket> {
  const host = '127.0.0.1';
  if (stores !== null && !random.oneIn(16)) {
    const session = random.oneIn(4) ? undefined : stores.sessions.get(port);
    const secureContext = stores.context;
    const secure = connectTls({ port, host, secureContext, ...(session === undefined ? {} : { session }) });
    secure.on('error', () => {});
    secure.once('session', (issued) => stores.sessions.set(port, issued));
    await new Promise<void>((resolve) => {
      secure.once('secureConnect', resolve);
      secure.once('close', () => resolve());
    });
    return secure;
  }
  const socket = connectTcp({ port, host });
  socket.on('error', () => {});
  if (stores !== null) socket.write(Buffer.from([0x16, 3, 1, random.below(8), random.below(256)]));
  return socket;
}

/** Waits for a DIGEST-MD5 challenge, or the end of the connection. */
async function challenge(socket: Socket): Promise<string> {
  let received = '';
  return await new Promise<string>((resolve) => {
    const onData = (chunk: Buffer): void => {
      received += chunk.toString('latin1');
      const nonce = /nonce="([^"]*)".*algorithm=md5-sess/s.exec(received)?.[1];
      if (nonce === undefined) return;
      socket.off('data', onData);
      resolve(nonce);
    };
    socket.on('data', onData);
    socket.once('close', () => resolve(''));
    if (socket.destroyed) resolve('');
  });
}
