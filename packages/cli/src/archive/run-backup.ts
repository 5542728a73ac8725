import {
  ArchiveError,
  type ArchiveFiles,
  Backup,
  type BackupState,
  isPassing,
  showZxid,
} from '@meerkat/server/archive';
import { parseDuration } from '../connection/duration.ts';
import type { Column } from '../output/column.ts';
import { byteCount, isoTime } from '../output/stat-columns.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { parseWholeNumber } from '../run/whole-number.ts';
import { withArchive } from './archive-failure.ts';
import { openSources } from './source.ts';
import type { BackupWords } from './words.ts';

interface Row extends BackupState {
  readonly directory: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { name: 'directory', value: ({ directory }) => directory },
  { name: 'zxid', value: ({ zxid }) => showZxid(zxid) },
  { name: 'time', value: ({ timeMs }) => (timeMs === null ? null : isoTime(timeMs)) },
  { name: 'oldest', value: ({ snapshots }) => snapshots[0]?.name ?? null },
  { name: 'snapshots', value: ({ snapshots }) => snapshots.length },
  {
    name: 'bytes',
    value: (state) => bytesOf(state),
    text: (state) => byteCount(bytesOf(state)),
  },
];

function bytesOf({ snapshots, logs }: BackupState): number {
  return [...snapshots, ...logs].reduce((sum, { size }) => sum + size, 0);
}

/** Interval between polls of the server's log, in milliseconds. */
const POLL_MS = 300;
/** Delay after a server did not answer, in milliseconds. */
const RETRY_MS = 1000;
/** A file may be purged between listing and opening: attempts before that is an error. */
const TRIES = 5;

export function runBackup(context: Context, words: BackupWords): Promise<CommandExit> {
  const { to: directory } = words;
  if (directory === undefined) throw new InvocationFailure('backup: --to names the directory of the backup');
  const isFollowing = words.follow === true;
  if (words.snapshotEvery !== undefined && !isFollowing)
    throw new InvocationFailure('--snapshot-every goes with --follow');
  const snapshotEveryMs = !isFollowing ? 0 : parseDuration(words.snapshotEvery ?? '1h', '--snapshot-every');
  const keepCount = words.keep === undefined ? null : parseWholeNumber(words.keep, '--keep', 1);
  const keepMs = words.keepFor === undefined ? null : parseDuration(words.keepFor, '--keep-for');
  return withArchive(async () => {
    const sources = await openSources(context, words);
    const onNote = (text: string): void => context.note(text);
    const options = { snapshotEveryMs, keepCount, keepMs, onWarning: onNote, onNotice: onNote };
    const backup = await Backup.open(directory, options);
    const round = new Rounds(context, backup, sources);
    try {
      if (isFollowing) await round.follow();
      else await round.once();
    } finally {
      await backup.close();
      for (const source of sources) await source.close();
      // Ctrl-C is how a continuous one is meant to end.
      if (round.state !== null) await context.report.one(COLUMNS, { directory, ...round.state });
    }
    return CommandExit.ok;
  });
}

/** Asks one server after the other, until one answers. */
class Rounds {
  state: BackupState | null = null;
  readonly #context: Context;
  readonly #backup: Backup;
  readonly #sources: readonly ArchiveFiles[];
  #at = 0;

  constructor(context: Context, backup: Backup, sources: readonly ArchiveFiles[]) {
    this.#context = context;
    this.#backup = backup;
    this.#sources = sources;
  }

  async once(): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        this.state = await this.#backup.catchUp(this.#source, this.#context.signal);
        return;
      } catch (error) {
        const tries = isAway(error) ? this.#sources.length : TRIES * this.#sources.length;
        if (!isPassing(error) || failures >= tries) throw error;
        this.#at++;
      }
    }
  }

  /** Until it is interrupted, or the backup cannot be written. */
  async follow(): Promise<never> {
    const { signal } = this.#context;
    let complaint: string | null = null;
    for (;;) {
      try {
        this.state = await this.#backup.catchUp(this.#source, signal);
        if (complaint !== null) {
          this.#context.note(`${this.#source.place} answers again: the backup has zxid ${showZxid(this.state.zxid)}`);
        }
        complaint = null;
        await pause(POLL_MS, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!isPassing(error)) throw error;
        if (isAway(error) && complaint === null) {
          complaint = (error as Error).message;
          this.#context.note(`${complaint}; the backup resumes when this or another server answers`);
        }
        this.#at++;
        await pause(isAway(error) ? RETRY_MS : POLL_MS, signal);
      }
    }
  }

  get #source(): ArchiveFiles {
    return this.#sources[this.#at % this.#sources.length]!;
  }
}

function isAway(error: unknown): boolean {
  return error instanceof ArchiveError && error.fault === 'unreachable';
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(new DOMException('interrupted', 'AbortError'));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
}
