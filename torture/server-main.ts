/**
 * The process of one server: a server as `meerkat server zoo.cfg` runs it, with faults of its disk and of its
 * connections to other servers controlled by the torture process. It exits when that process is gone.
 *
 *     node server-main.js <zoo.cfg> <ports to dial instead of those of the other servers, as JSON pairs>
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type RunningServer, readZooCfg, runServer } from '@meerkat/server';
import { atticOf, FaultyDisk } from './faulty-disk.ts';
import { type FromServer, isToServer } from './messages.ts';
import { RedirectedNetwork } from './redirected-network.ts';

/** Milliseconds between two checks for a changed status. */
const STATUS_MS = 50;

const [file = '', redirections = '[]'] = process.argv.slice(2);
const configuration = readZooCfg({ text: readFileSync(file, 'utf8'), file, workingDirectory: process.cwd() });
const ports = new Map(JSON.parse(redirections) as [number, number][]);
const directory = dirname(file);

let disk: FaultyDisk | null = null;
let server: RunningServer | null = null;
let epoch = 0;
let isLeading = false;

function send(message: FromServer): void {
  if (process.connected) process.send?.(message);
}

process.on('message', (message) => {
  if (!isToServer(message)) return;
  if (message.kind === 'disk') {
    if (disk !== null) disk.trouble = message.trouble;
    return;
  }
  const view = server?.view ?? null;
  const database = view?.database() ?? null;
  if (view === null || database === null) return;
  const { lastZxid, treeDigest, sessions } = database;
  send({
    kind: 'inspection',
    lastZxid,
    treeDigest: treeDigest.toString(16),
    sessions: [...sessions].map(([id, timeoutMs]) => [id.toString(16), timeoutMs]),
    digests: view.digests().map(({ zxid, digest }) => [zxid, digest.toString(16)]),
  });
});
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));

function printStatus({ view }: RunningServer, last: string): string {
  const status: FromServer = {
    kind: 'status',
    role: view.ensemble?.role ?? 'looking',
    isServing: view.isServing,
    leader: view.ensemble?.leader ?? null,
    membershipVersion: view.ensemble?.membership.version ?? 0,
    voters: (view.ensemble?.membership.members ?? [])
      .filter(({ role: kind }) => kind === 'participant')
      .map(({ serverId }) => serverId),
    epoch,
    lastZxid: view.lastZxid,
    sessionCount: view.sessionCount,
  };
  const text = JSON.stringify(status);
  if (text !== last) send(status);
  return text;
}

process.exitCode = await runServer(
  configuration,
  (running) => {
    server = running;
    let last = '';
    setInterval(() => {
      last = printStatus(running, last);
    }, STATUS_MS);
  },
  {
    decorateDisk: (files, deliver) => {
      disk = new FaultyDisk(files, atticOf(configuration.server.dataLogDirectory), {
        deliver,
        fraction: Math.random,
      });
      return disk;
    },
    decorateNetwork: (sockets) => new RedirectedNetwork(sockets, ports),
    trace: {
      emit(event) {
        if (event.kind === 'role-changed') isLeading = event.role === 'leading';
        else if (event.kind === 'digest-mismatch') send({ kind: 'digest-mismatch', zxid: event.zxid });
        else if (event.kind === 'epoch-established') {
          epoch = event.epoch;
          if (!isLeading) return;
          // Written before anything of the epoch is committed, so that it survives a crash of this process.
          appendFileSync(join(directory, 'established'), `${event.epoch} ${event.zxid}\n`);
          send({ kind: 'established', epoch });
        }
      },
    },
  },
);
// A hanging file operation must not keep the process alive.
process.exit();
