/** `npm run simulate`: runs seeds, and shows the first that violates an invariant, shrunk as far as possible. */
import { createWriteStream, type WriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { FAULT_KINDS, type Fault, type FaultKind, formatFault, NAMED_FAULT_KINDS, parseFault } from './fault.ts';
import { commandOf, type Shape } from './repeat-command.ts';
import { shrinkFailure } from './shrink-failure.ts';
import { type SimulateOptions, type SimulateResult, simulate } from './simulate.ts';
import { TRAITS, type Trait } from './traits.ts';

const USAGE = `npm run simulate -- [options]

  --seed N            the first seed, or the only one; default 1
  --seeds A..B        these seeds, one after the other
  --until-failure     one seed after the other until one fails
  --servers N         participants; default 3
  --observers N       default 0
  --spares N          servers that are no members at first: the members change; default 0
  --groups N          quorums of groups: the participants are dealt out to so many
  --hierarchy         each seed draws groups and weights
  --minutes N         virtual minutes of faults for each seed; default 1
  --faults a,b        kinds of faults, or none; default: all
                      ${FAULT_KINDS.join(', ').replaceAll(/(.{50,60}) /g, '$1\n                      ')}
                      and, where it is named, break-joins
  --fault 'LINE'      exactly these faults, as a failure prints them; may be given many times
  --traits a,b        what is special about the servers, or none; default: each seed draws it
                      ${TRAITS.join(', ')}
  --clients N         default 4
  --rate N            operations per second of each client; default 6
  --without A,B       promises that are not looked after, for instance W3: what else notices a defect
  --no-shrink         do not make the list of faults of a failure smaller
  --trace FILE        write down everything that happens; of several seeds the last one is kept
  --help
`;

interface Campaign {
  readonly seeds: Iterable<number>;
  readonly shape: Shape;
  readonly isShrinking: boolean;
  readonly traceFile: string | null;
}

class UsageError extends Error {}

function readCampaign(args: readonly string[]): Campaign | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string' },
      'until-failure': { type: 'boolean', default: false },
      servers: { type: 'string', default: '3' },
      observers: { type: 'string', default: '0' },
      spares: { type: 'string', default: '0' },
      groups: { type: 'string' },
      hierarchy: { type: 'boolean', default: false },
      minutes: { type: 'string', default: '1' },
      faults: { type: 'string' },
      fault: { type: 'string', multiple: true },
      traits: { type: 'string' },
      clients: { type: 'string' },
      rate: { type: 'string' },
      without: { type: 'string' },
      'no-shrink': { type: 'boolean', default: false },
      trace: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  const first = readNumber('seed', values.seed ?? '1', 0);
  const [from = first, to = from] =
    values.seeds === undefined ? [first] : values.seeds.split('..').map((text) => readNumber('seeds', text, 0));
  const workload = {
    ...(values.clients === undefined ? {} : { clients: readNumber('clients', values.clients, 1) }),
    ...(values.rate === undefined ? {} : { operationsPerSecond: Number(values.rate) }),
  };
  return {
    seeds: countFrom(from, values['until-failure'] ? Number.POSITIVE_INFINITY : to),
    shape: {
      servers: readNumber('servers', values.servers, 1),
      observers: readNumber('observers', values.observers, 0),
      spares: readNumber('spares', values.spares, 0),
      groups: readGroups(values.groups, values.hierarchy),
      minutes: Number(values.minutes),
      faults: values.faults === undefined ? undefined : readKinds(values.faults),
      traits: values.traits === undefined ? undefined : readTraits(values.traits),
      plan: values.fault?.map(readFault),
      without: values.without?.split(','),
      workload,
    },
    isShrinking: !values['no-shrink'],
    traceFile: values.trace ?? null,
  };
}

function* countFrom(first: number, last: number): Iterable<number> {
  for (let seed = first; seed <= last; seed++) yield seed;
}

function readNumber(name: string, text: string, min: number): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < min) throw new UsageError(`--${name} ${text}: a number from ${min} on`);
  return number;
}

function readGroups(text: string | undefined, isDrawn: boolean): number | 'drawn' | undefined {
  if (isDrawn) return 'drawn';
  return text === undefined ? undefined : readNumber('groups', text, 1);
}

function readKinds(text: string): readonly FaultKind[] {
  if (text === 'none') return [];
  if (text === 'all') return FAULT_KINDS;
  return text.split(',').map((name) => {
    const kind = NAMED_FAULT_KINDS.find((known) => known === name);
    if (kind === undefined) throw new UsageError(`--faults ${name}: not one of ${NAMED_FAULT_KINDS.join(', ')}`);
    return kind;
  });
}

function readTraits(text: string): readonly Trait[] {
  if (text === 'none') return [];
  if (text === 'all') return TRAITS;
  return text.split(',').map((name) => {
    const trait = TRAITS.find((known) => known === name);
    if (trait === undefined) throw new UsageError(`--traits ${name}: not one of ${TRAITS.join(', ')}`);
    return trait;
  });
}

function readFault(text: string): Fault {
  const fault = parseFault(text);
  if (fault === null) throw new UsageError(`--fault '${text}': not a line as a failure prints it`);
  return fault;
}

/** Runs the seeds; @returns the exit code */
async function run(campaign: Campaign): Promise<number> {
  let isCancelled = false;
  process.on('SIGINT', () => {
    // The second one does not wait for the end of a virtual second.
    if (isCancelled) process.exit(130);
    isCancelled = true;
  });
  const began = performance.now();
  const done = { seeds: 0, virtualMs: 0, operations: 0, epochs: 0, faults: 0 };
  let lastProgress = began;
  const summarize = (): string => {
    const seconds = (performance.now() - began) / 1000;
    const faster = Math.round(done.virtualMs / 1000 / seconds);
    const { seeds, operations, epochs, faults } = done;
    return (
      `${seeds} seeds, ${Math.round(done.virtualMs / 60_000)} virtual minutes, ${operations} operations, ` +
      `${faults} faults, ${epochs} epochs in ${seconds.toFixed(1)} s: ${faster} times as fast as time`
    );
  };
  for (const seed of campaign.seeds) {
    const options: SimulateOptions = { ...campaign.shape, seed, isCancelled: () => isCancelled };
    const result = await simulateTraced(options, campaign.traceFile);
    done.virtualMs += result.stats.virtualMs;
    done.operations += result.stats.operations;
    done.epochs += result.stats.epochs;
    done.faults += result.stats.faults;
    if (result.violations.length > 0) {
      await report(campaign, result, () => isCancelled);
      process.stdout.write(`${summarize()}\n`);
      return 1;
    }
    if (isCancelled) break;
    done.seeds++;
    if (performance.now() - lastProgress > PROGRESS_EVERY_MS) {
      lastProgress = performance.now();
      process.stderr.write(`seed ${seed}: ${summarize()}\n`);
    }
    if (done.seeds === 1 && campaign.shape.plan === undefined) {
      process.stdout.write(`seed ${seed}: ${describe(result)}\n`);
    }
  }
  process.stdout.write(`${isCancelled ? 'cancelled after ' : ''}${summarize()}\n`);
  return isCancelled ? 130 : 0;
}

async function simulateTraced(options: SimulateOptions, traceFile: string | null): Promise<SimulateResult> {
  if (traceFile === null) return simulate(options);
  const file = createWriteStream(traceFile);
  const result = await simulate({ ...options, onLine: (line) => void file.write(`${line}\n`) });
  await finish(file);
  return result;
}

function finish(file: WriteStream): Promise<void> {
  return new Promise((resolve, reject) => {
    file.on('error', reject);
    file.end(resolve);
  });
}

async function report(campaign: Campaign, result: SimulateResult, isCancelled: () => boolean): Promise<void> {
  const write = (text: string): void => void process.stdout.write(`${text}\n`);
  write(`seed ${result.seed} fails: ${describe(result)}`);
  write(formatViolations(result));
  let smallest = result;
  if (campaign.isShrinking && result.plan.length > 0) {
    process.stderr.write(`looking for the faults that are needed, out of ${result.plan.length} (Ctrl-C ends it)\n`);
    smallest = await shrinkFailure({ ...campaign.shape, seed: result.seed }, result, isCancelled);
    write(`\nwith ${smallest.plan.length} of ${result.plan.length} faults:`);
    write(formatViolations(smallest));
  }
  write(`\nthe last of what happened:\n${smallest.tail.slice(-TAIL_LINES_SHOWN).join('\n')}`);
  write(`\nthe faults:\n${smallest.plan.map((fault) => `  ${formatFault(fault)}`).join('\n')}`);
  write(`\nto repeat it:\n  ${commandOf(campaign.shape, smallest.seed, smallest.plan)}`);
}

function describe({ stats, traceHash, traits }: SimulateResult): string {
  const { operations, succeeded, inDoubt, watchEvents, faults, epochs, serverStarts, recoveredMs } = stats;
  const recovered = recoveredMs === null ? 'not recovered' : `recovered in ${recoveredMs} ms`;
  return (
    `${operations} operations (${succeeded} succeeded, ${inDoubt} in doubt), ${watchEvents} watch events, ` +
    `${faults} faults, ${serverStarts} starts, ${epochs} epochs, ${recovered}, ` +
    `${traits.length === 0 ? 'a plain world' : traits.join(', ')}, trace ${traceHash}`
  );
}

function formatViolations({ violations }: SimulateResult): string {
  return violations
    .slice(0, VIOLATIONS_SHOWN)
    .map(({ invariant, atMs, message }) => `  ${invariant} at ${atMs.toFixed(3)}: ${message}`)
    .join('\n');
}

const PROGRESS_EVERY_MS = 5000;
const TAIL_LINES_SHOWN = 60;
const VIOLATIONS_SHOWN = 5;

/** The reader of a pipe has gone, as with `| head`. */
process.stdout.on('error', () => process.exit(1));

async function main(): Promise<number> {
  let campaign: Campaign | null;
  try {
    campaign = readCampaign(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
  if (campaign === null) {
    process.stdout.write(USAGE);
    return 0;
  }
  return run(campaign);
}

process.exitCode = await main();
