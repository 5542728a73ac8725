/** `npm run torture`: see docs/simulator.md, "Torture". */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { NamespaceNetwork, OWN_NAMESPACE } from './namespace-network.ts';
import { Namespaces, removeLeftNamespaces, whyNoNamespaces } from './namespaces.ts';
import type { TortureNetwork } from './network.ts';
import { HELP, parseOptions, type TortureOptions } from './options.ts';
import { ProxyNetwork } from './proxy-network.ts';
import { endLeftServers, makeRunDirectory } from './run-directory.ts';
import { tableOf } from './run-totals.ts';
import { Screen } from './screen.ts';
import { Torture } from './torture.ts';

/** Set for the process in the clients' namespace: the namespaces that its parent created. */
const WITHIN = 'MEERKAT_TORTURE_NAMESPACES';
/** Set likewise: the random seed drawn by the parent. */
const SEED = 'MEERKAT_TORTURE_SEED';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

const OK = 0;
const BROKEN = 1;
const INVOCATION = 2;
/** Exit code: no violation, but the run did too little to prove anything. */
const TOO_LITTLE = 3;

async function main(): Promise<number> {
  const chance = Number(process.env[SEED] ?? Math.floor(Math.random() * 2 ** 32));
  const options = parseOptions(process.argv.slice(2), chance);
  if (options === null) {
    console.log(HELP);
    return OK;
  }
  if (typeof options === 'string') {
    console.error(`${options}\n\n${HELP}`);
    return INVOCATION;
  }
  const within = process.env[WITHIN];
  if (within !== undefined) return runIn(options, new NamespaceNetwork(new Namespaces(within), options.servers));
  removeLeftNamespaces();
  endLeftServers();
  const namespaces = options.usesProxies ? 'you have asked for proxies' : makeNamespaces(options);
  if (typeof namespaces !== 'string') return runWithin(options, namespaces);
  console.log(`proxies instead of network namespaces: ${namespaces}`);
  return runIn(options, await ProxyNetwork.start(options.servers, options.clients));
}

/** @returns the reason, as text, when namespaces are not available */
function makeNamespaces({ servers, clients }: TortureOptions): Namespaces | string {
  const reason = whyNoNamespaces();
  if (reason !== null) return reason;
  try {
    return Namespaces.make(servers, clients);
  } catch (error) {
    return (error as Error).message;
  }
}

/** Runs this program again in the clients' namespace, and removes all namespaces when it exits. */
async function runWithin({ seed }: TortureOptions, namespaces: Namespaces): Promise<number> {
  const [program = '', ...args] = namespaces.commandOf(OWN_NAMESPACE);
  const child = spawn(program, [...args, process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    env: { ...process.env, [WITHIN]: namespaces.prefix, [SEED]: String(seed) },
    // The IPC channel notifies the child when this process exits.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  // A terminal sends Ctrl-C to both, which is harmless: this process exits after the child.
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? BROKEN;
  } finally {
    namespaces.remove();
  }
}

async function runIn(options: TortureOptions, network: TortureNetwork): Promise<number> {
  const isTerminal = process.stdout.isTTY === true;
  const screen = new Screen((text) => void process.stdout.write(text), isTerminal);
  const torture = new Torture(options, network, makeRunDirectory(), screen);
  const { servers, clients, seed, minutes } = options;
  screen.print(`${servers} servers, ${clients} clients, ${minutes} minutes, ${network.name}, seed ${seed}`);
  const interrupt = (): void => {
    if (torture.isInterrupted) return;
    screen.print('interrupted: heals, checks what there is, and ends');
    torture.interrupt();
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
  process.on('disconnect', interrupt);
  for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, (error) => torture.fail(error));
  await torture.run();
  await network.close();
  screen.print(torture.report());
  if (options.summary !== null) writeFileSync(options.summary, formatSummary(options, network, torture));
  torture.cleanUp();
  if (torture.violations.length > 0) return BROKEN;
  return torture.shortfalls.length > 0 ? TOO_LITTLE : OK;
}

function formatSummary({ servers, clients }: TortureOptions, network: TortureNetwork, torture: Torture): string {
  const lines = [
    ['servers, clients', `${servers}, ${clients}`],
    ['network', network.name],
    ...tableOf(torture.totals, torture.violations.length),
  ];
  return ['| | |', '| --- | ---: |', ...lines.map(([label, figure]) => `| ${label} | ${figure} |`), ''].join('\n');
}

process.exitCode = await main();
// An open server log or a client timer must not keep the process alive.
process.exit();
