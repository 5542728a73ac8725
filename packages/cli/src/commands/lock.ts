import { type Client, isZooKeeperError } from '@meerkat/client';
import type { Held, LeaseHolder, Lock } from '@meerkat/recipes';
import {
  addHoldOptions,
  type HoldSettings,
  type HoldWords,
  handleMargin,
  parseHoldSettings,
} from '../child/hold-settings.ts';
import { runHeld } from '../child/run-held.ts';
import { hex } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { writeAll } from '../run/io.ts';
import { reportFailure } from '../run/report-failure.ts';

interface Options extends HoldWords {
  readonly read?: boolean;
  readonly write?: boolean;
  readonly leases?: string;
  /** --no-wait makes it false. */
  readonly wait: boolean;
  readonly conflictExitCode?: string;
}

/** A longer wait names the holder. Milliseconds. */
const QUIET_MS = 300;

/** `lock`: a command that runs while a lock is held. */
export const lock: DefineCommand = (command, host) => {
  command
    .description(
      'Run a command while holding a lock, and exit with its exit code. It gets SIGTERM, and then killed, when the ' +
        'lock is no longer certain (exit code 27). MEERKAT_LOCK_PATH, _TOKEN, _ZNODE and _SESSION are in its environment.',
    )
    .usage('[options] <path> -- <command> [arguments]')
    .argument('<path>', 'the lock')
    .argument('<command...>', 'what to run, behind "--"')
    .option('--read', 'a read-write lock: shared with other readers; writers say --write')
    .option('--write', 'a read-write lock: alone, among those who say --read and --write')
    .option('--leases <n>', 'a semaphore: up to so many hold it at a time; all have to pass the same number');
  addHoldOptions(command)
    .option('--no-wait', 'fail at once if it is held (exit code 1)')
    .option('-E, --conflict-exit-code <n>', 'how to exit when it is not acquired (default 1 with --no-wait, else 124)')
    .addHelpText(
      'after',
      examples([
        ['meerkat lock /locks/backup -- ./backup.sh', 'one at a time, everywhere'],
        ['meerkat lock --no-wait /locks/cron -- ./job', 'not at all when it runs elsewhere'],
        ['meerkat lock --acquire-timeout 1m /locks/db -- ./migrate', 'waits a minute, then exits with 124'],
        ['meerkat lock --leases 3 /limits/reports -- ./report', 'up to three at a time'],
        ['meerkat lock --layout kazoo /locks/a -- ./job', "shared with programs that use kazoo's Lock"],
        [
          `meerkat lock /locks/a -- sh -c 'echo $MEERKAT_LOCK_TOKEN'`,
          'the fencing token: it grows from holder to holder',
        ],
      ]),
    )
    .action((path: string, words: string[], options: Options) =>
      host.run((context) => run(context, path, words, options)),
    );
};

async function run(context: Context, text: string, words: readonly string[], options: Options): Promise<number> {
  const path = context.resolve(text);
  const kind = kindOf(options);
  const conflictExitCode = parseConflictExitCode(options);
  const settings = parseHoldSettings(options);
  const client = await context.connect();
  const lockable = await makeLockable(client, path, kind, settings);
  const held = await acquire(context, client, lockable, path, settings, options).catch((error: unknown) => {
    if (conflictExitCode !== null && error instanceof NotAcquired) return error;
    throw error;
  });
  if (held instanceof NotAcquired) {
    await reportFailure(held, context.report, context.io);
    return conflictExitCode ?? held.exitCode;
  }
  const shown = `the lock ${path}`;
  const env = {
    MEERKAT_LOCK_PATH: path,
    MEERKAT_LOCK_TOKEN: String(held.token),
    MEERKAT_LOCK_ZNODE: held.path,
    MEERKAT_LOCK_SESSION: hex(held.sessionId),
  };
  const { killAfterMs, marginMs } = settings;
  const end = await runHeld(context, { client, held, words, env, killAfterMs, marginMs, shown });
  if (end.fault !== null) await writeAll(context.io.stderr, `meerkat: ${end.fault}\n`);
  if (end.lossReason !== null) {
    throw new CommandFailure(
      CommandExit.ownershipLost,
      `the lock was lost while the command ran, and the command was ended: ${end.lossReason}`,
    );
  }
  return end.exitCode;
}

/** Another client holds it, and the wait is over. */
class NotAcquired extends CommandFailure {}

/** A mutex, a read-write lock or a semaphore. */
interface Lockable {
  acquire(options: { signal: AbortSignal; timeoutMs: number | undefined }): Promise<HeldZnode>;
  tryAcquire(options: Context['call']): Promise<HeldZnode | null>;
  /** Those who hold it. */
  holders(options: Context['call']): Promise<readonly Pick<LeaseHolder, 'data' | 'since' | 'sessionId'>[]>;
}

type HeldZnode = Held & Pick<Lock, 'path' | 'sessionId'>;

type Kind = { readonly kind: 'mutex' | 'read' | 'write' } | { readonly kind: 'semaphore'; readonly leasesMax: number };

function kindOf({ read, write, leases }: Options): Kind {
  if ([read, write, leases].filter((option) => option !== undefined).length > 1) {
    throw new InvocationFailure('--read, --write and --leases are three different kinds of lock: choose one');
  }
  if (leases !== undefined) {
    const leasesMax = Number(leases);
    if (!Number.isSafeInteger(leasesMax) || leasesMax < 1) {
      throw new InvocationFailure(`--leases: expected a number from 1 on, found "${leases}"`);
    }
    return { kind: 'semaphore', leasesMax };
  }
  return { kind: read === true ? 'read' : write === true ? 'write' : 'mutex' };
}

async function makeLockable(client: Client, path: string, kind: Kind, settings: HoldSettings): Promise<Lockable> {
  const { Mutex, ReadWriteLock, Semaphore } = await import('@meerkat/recipes');
  const { layout, id: data } = settings;
  const options = { layout, data, marginMs: handleMargin(settings, client) };
  switch (kind.kind) {
    case 'mutex': {
      const mutex = new Mutex(client, path, options);
      return {
        acquire: (call) => mutex.acquire(call),
        tryAcquire: (call) => mutex.tryAcquire(call),
        holders: async (call) => (await mutex.contenders(call)).filter(({ isFirst }) => isFirst),
      };
    }
    case 'semaphore': {
      const semaphore = new Semaphore(client, path, { ...options, leasesMax: kind.leasesMax });
      return {
        acquire: (call) => semaphore.acquire(call),
        tryAcquire: (call) => semaphore.tryAcquire(call),
        holders: async (call) => {
          const holders = await semaphore.holders(call);
          // The next contender is among them, as the youngest.
          return holders.toSorted((a, b) => (a.token < b.token ? -1 : 1)).slice(0, kind.leasesMax);
        },
      };
    }
    default: {
      const both = new ReadWriteLock(client, path, options);
      const isRead = kind.kind === 'read';
      return {
        acquire: (call) => (isRead ? both.acquireRead(call) : both.acquireWrite(call)),
        tryAcquire: (call) => (isRead ? both.tryAcquireRead(call) : both.tryAcquireWrite(call)),
        holders: async (call) => (await both.contenders(call)).filter(({ isFirst }) => isFirst),
      };
    }
  }
}

/** @throws NotAcquired */
async function acquire(
  context: Context,
  client: Client,
  lockable: Lockable,
  path: string,
  { acquireMs }: HoldSettings,
  { wait }: Options,
): Promise<HeldZnode> {
  const { signal, call } = context;
  /** '' when none is found. */
  const findHolders = async (): Promise<string> => {
    const holders = await lockable.holders(call).catch(() => []);
    // It has it already where the servers have acquired it and the answer is on its way.
    return holders
      .filter(({ sessionId }) => sessionId !== client.session?.id)
      .map(describeHolder)
      .join(', ');
  };
  const describeHolders = async (): Promise<string> => (await findHolders()) || 'another client';
  if (!wait) {
    const held = await lockable.tryAcquire(call);
    if (held !== null) return held;
    throw new NotAcquired(CommandExit.no, `${path} is locked by ${await describeHolders()}; the command was not run`);
  }
  const acquired = lockable.acquire({ signal, timeoutMs: acquireMs });
  const timer = setTimeout(async () => {
    const holders = await findHolders();
    // Without a holder, only the reply of the server is outstanding.
    if (isWaiting && holders !== '') context.note(`waiting for ${path}, which is locked by ${holders}`);
  }, QUIET_MS);
  let isWaiting = true;
  try {
    return await acquired;
  } catch (error) {
    if (!isZooKeeperError(error) || error.code !== 'TIMEOUT') throw error;
    const holders = await describeHolders();
    throw new NotAcquired(
      CommandExit.timedOut,
      `${path} could not be locked within --acquire-timeout, it is locked by ${holders}; the command was not run`,
    );
  } finally {
    isWaiting = false;
    clearTimeout(timer);
  }
}

function describeHolder({ data, since }: { readonly data: Uint8Array; readonly since: Date }): string {
  const id = new TextDecoder().decode(data);
  return `${id === '' ? 'a holder without a name' : id} since ${since.toISOString()}`;
}

function parseConflictExitCode({ conflictExitCode }: Options): number | null {
  if (conflictExitCode === undefined) return null;
  const exitCode = Number(conflictExitCode);
  if (Number.isInteger(exitCode) && exitCode >= 0 && exitCode <= 255) return exitCode;
  throw new InvocationFailure(`--conflict-exit-code: expected a number from 0 to 255, found "${conflictExitCode}"`);
}
