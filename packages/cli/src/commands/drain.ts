import { setTimeout as sleep } from 'node:timers/promises';
import { adminTls, credentialsOf } from '../archive/source.ts';
import { parseDuration } from '../connection/duration.ts';
import { parsePort } from '../draining/admin-ports.ts';
import { askAdmin } from '../draining/admin-request.ts';
import { clientsLeft } from '../draining/clients-left.ts';
import { readStates } from '../monitoring/server-state.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

interface Words {
  readonly httpPort: string;
  readonly https?: boolean;
  readonly perSecond: string;
  readonly within: string;
  readonly undo?: boolean;
}

/** `drain`: clients leave a server before it stops. */
export const drain: DefineCommand = (command, host) => {
  command
    .option('--http-port <port>', 'the admin port of the server', '8080')
    .option('--https', 'it speaks TLS: with the --tls options')
    .option('--per-second <count>', 'clients that are sent away in a second', '500')
    .option('--within <duration>', 'how long to wait until they are gone', '1m')
    .option('--undo', 'take clients again')
    .addHelpText(
      'after',
      `\nThe one server of --server accepts no more sessions, and is not ready (/readyz); its clients move to the other
servers of their connect strings, with their sessions, watches and ephemerals. Then stop it. Ours only.\n${examples([
        ['meerkat drain --server zk2 && ssh zk2 sudo systemctl restart meerkat', 'a restart that no client waits for'],
        ['meerkat drain --server zk2 --undo', 'it was not needed after all'],
      ])}`,
    )
    .action((words: Words) => host.run((context) => run(context, words)));
};

async function run(
  context: Context,
  { httpPort, https = false, perSecond, within, undo = false }: Words,
): Promise<CommandExit> {
  const { timeoutMs = ANSWER_MS, signal, report } = context;
  const servers = await context.servers();
  const [server] = servers;
  if (server === undefined || servers.length > 1) {
    throw new InvocationFailure(
      'drain is for one server: name it with --server, the others are those that take its clients',
    );
  }
  const port = parsePort(httpPort);
  const credentials = await credentialsOf(context);
  const tls = https ? await adminTls(context) : null;
  const request = { server, port, tls, credentials, timeoutMs, signal };
  if (!/^[1-9]\d{0,5}$/.test(perSecond))
    throw new InvocationFailure(`--per-second: expected a number, found "${perSecond}"`);
  await askAdmin(undo ? 'undrain' : `drain?per_second=${perSecond}`, request);
  if (undo) return CommandExit.ok;
  const untilMs = performance.now() + parseDuration(within, '--within');
  for (;;) {
    const [state] = await readStates([server], timeoutMs, signal);
    const left = clientsLeft(state!);
    if (left === 0) {
      if (report.isForPeople) await report.line(`${server.name} has no clients left`);
      return CommandExit.ok;
    }
    if (performance.now() > untilMs) {
      context.note(`${server.name} still has ${left} connections: clients that name no other server come back`);
      return CommandExit.no;
    }
    await sleep(200, undefined, { signal });
  }
}
