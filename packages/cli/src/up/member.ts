import { readFileSync } from 'node:fs';
import { CuttableNetwork, type RunningServer, readZooCfg, runServer } from '@meerkat/server/run';
import { type MemberStatus, parseCuts } from './messages.ts';

/** Polling interval of the status, in milliseconds. */
const STATUS_MS = 100;

/**
 * The process of one server of `meerkat up`: `meerkat server zoo.cfg`, and besides that it tells its parent what it does, lets
 * itself be cut off from other servers, and stops when its parent is gone.
 *
 * @param words the zoo.cfg, and the ids to be cut off from, separated by commas
 * @returns the code to exit with
 */
export async function runMember([file = '', cuts = '']: readonly string[]): Promise<number> {
  const configuration = readZooCfg({ text: readFileSync(file, 'utf8'), file, workingDirectory: process.cwd() });
  const owners = new Map(
    (configuration.core.ensemble?.membership.members ?? []).flatMap(({ serverId, addresses }) =>
      addresses.flatMap(({ quorumPort, electionPort }) => [
        [quorumPort, serverId],
        [electionPort, serverId],
      ]),
    ),
  );
  let cutFrom = new Set(cuts.split(',').filter(Boolean).map(Number));
  let network: CuttableNetwork | null = null;
  let epoch = 0;

  process.on('message', (message) => {
    const changed = parseCuts(message);
    if (changed === null) return;
    cutFrom = new Set(changed.cutFrom);
    network?.onCutsChanged();
  });
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));

  function printStatus({ view }: RunningServer, last: string): string {
    const status: MemberStatus = {
      role: view.ensemble?.role ?? 'looking',
      isServing: view.isServing,
      leader: view.ensemble?.leader ?? null,
      epoch,
      lastZxid: view.lastZxid,
    };
    const text = JSON.stringify(status);
    if (text !== last && process.connected) process.send?.(status);
    return text;
  }

  return runServer(
    configuration,
    (server) => {
      let last = '';
      setInterval(() => {
        last = printStatus(server, last);
      }, STATUS_MS);
    },
    {
      decorateNetwork: (sockets, deliver) => {
        network = new CuttableNetwork(sockets, deliver, {
          isCutFrom: (port) => cutFrom.has(owners.get(port) ?? 0),
        });
        return network;
      },
      trace: {
        emit(event) {
          if (event.kind === 'epoch-established') epoch = event.epoch;
        },
      },
    },
  );
}
