import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, renameSync, statSync, symlinkSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Holds a directory for one process at a time, without outliving the process.
 *
 * Node has no file locks. What dies with a process in any case, kill -9 included, is a listening socket; so a hold is a
 * Unix socket in the directory itself. It works between containers that share the directory on one kernel. Servers on
 * several machines that share a directory over a network do not see each other.
 *
 * A claim is a socket with a name of its own, `meerkat.<random>.hold`, that is listening before it gets this name.
 *
 *  1. A process announces its claim, and then asks every other claim that it finds.
 *  2. A claim that does not answer (ECONNREFUSED) is dead, and its name is removed. Names are never used twice, so this
 *     cannot remove a live claim.
 *  3. One that holds the directory, or is connected but silent, is respected.
 *  4. Of two claims that are still asking, the one with the smaller name proceeds and the other one is withdrawn.
 *
 * Two processes cannot both hold the directory: each announced its claim before it looked, so the one that looked later
 * saw the other.
 */
export interface Hold {
  /** Removes the claim. */
  release(): void;
}

/** The directory belongs to another process. */
export class HeldError extends Error {
  readonly code = 'EBUSY';
  /** What the other one said of itself: "holding process 17". */
  readonly holder: string;

  constructor(directory: string, holder: string) {
    super(`${directory} is held by another server (${holder})`);
    this.name = 'HeldError';
    this.holder = holder;
  }
}

/** @throws HeldError, or Node's error when no socket can be made */
export async function holdDirectory(directory: string): Promise<Hold> {
  const place = findPlace(directory);
  try {
    return await new Claim(place, directory).acquire();
  } finally {
    place.leave();
  }
}

/** Longest path of a Unix socket in bytes: 103 on the BSDs and macOS, 107 on Linux. */
const SOCKET_PATH_BYTES_MAX = 103;
const CLAIM_NAME = /^meerkat\.[0-9a-f]{16}\.hold$/;
/** A claim that is being prepared; left behind only by a process that ended within a millisecond. */
const DRAFT_NAME = /^meerkat\.[0-9a-f]{16}\.draft$/;
const NAME_BYTES = 'meerkat.0123456789abcdef.draft'.length;
/** Milliseconds after which a claim that accepted the connection but is silent counts as holding. */
const ANSWER_MS_MAX = 2000;
const ASK_AGAIN_MS = 20;

/** Where the claims on a directory are, under a path that is short enough for sockets. */
interface Place {
  readonly path: string;
  leave(): void;
}

function findPlace(directory: string): Place {
  if (Buffer.byteLength(directory) + 1 + NAME_BYTES <= SOCKET_PATH_BYTES_MAX) return { path: directory, leave() {} };
  const path = join(tmpdir(), `meerkat-${randomBytes(8).toString('hex')}`);
  symlinkSync(directory, path);
  return { path, leave: () => removeQuietly(path) };
}

/** For file systems without sockets: a directory of this machine, named after the identity of the one to hold. */
function makeSubstitute(directory: string): string {
  const { dev, ino } = statSync(directory);
  const path = join(tmpdir(), `meerkat-hold-${dev}-${ino}`);
  try {
    mkdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return path;
}

class Claim {
  readonly #place: Place;
  readonly #directory: string;
  readonly #name = `meerkat.${randomBytes(8).toString('hex')}.hold`;
  readonly #server: Server = createServer((socket) => this.#answer(socket));
  #claims: string;
  #state: 'asking' | 'holding' = 'asking';

  constructor(place: Place, directory: string) {
    this.#place = place;
    this.#directory = directory;
    this.#claims = directory;
  }

  async acquire(): Promise<Hold> {
    try {
      await this.#announce();
    } catch (error) {
      if (!isWithoutSockets(error)) throw error;
      this.#claims = makeSubstitute(this.#directory);
      await this.#announce();
    }
    try {
      while (await this.#isContended()) await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    } catch (error) {
      this.#release();
      throw error;
    }
    this.#state = 'holding';
    return { release: () => this.#release() };
  }

  /** Listens, then takes the name under which others look for claims. */
  async #announce(): Promise<void> {
    const draft = this.#name.replace('.hold', '.draft');
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(join(this.#socketDirectory, draft), () => {
        this.#server.off('error', reject);
        this.#server.on('error', () => {});
        resolve();
      });
    });
    this.#server.unref();
    renameSync(join(this.#claims, draft), join(this.#claims, this.#name));
  }

  /** Asks the other claims once. @returns true when a greater claim is still asking: it will withdraw, or hold */
  async #isContended(): Promise<boolean> {
    let contended = false;
    for (const name of readdirSync(this.#claims)) {
      const isDraft = DRAFT_NAME.test(name);
      if (name === this.#name || !(isDraft || CLAIM_NAME.test(name))) continue;
      const answer = await ask(join(this.#socketDirectory, name));
      if (answer === null) {
        // A draft that refuses may be about to listen; it is left alone, and it comes with a claim of its own later.
        if (!isDraft) removeQuietly(join(this.#claims, name));
      } else if (!isDraft) {
        if (!answer.startsWith('asking') || name < this.#name) throw new HeldError(this.#directory, answer);
        contended = true;
      }
    }
    return contended;
  }

  get #socketDirectory(): string {
    return this.#claims === this.#directory ? this.#place.path : this.#claims;
  }

  #answer(socket: Socket): void {
    socket.on('error', () => {});
    socket.end(`${this.#state} process ${process.pid}`);
  }

  #release(): void {
    removeQuietly(join(this.#claims, this.#name));
    this.#server.close();
  }
}

/** What a claim says of itself: "holding process 17"; null when its process has ended. */
function ask(path: string): Promise<string | null> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(path);
    socket.setTimeout(ANSWER_MS_MAX, () => {
      resolve('it does not answer');
      socket.destroy();
    });
    socket.on('data', (chunk) => {
      answer += chunk.toString();
    });
    socket.on('end', () => resolve(answer === '' ? 'it does not answer' : answer));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // Anything else (a full backlog, missing permission) may come from a live process.
      const isGone = error.code === 'ECONNREFUSED' || error.code === 'ENOENT';
      resolve(isGone ? null : `it cannot be asked: ${error.code}`);
    });
  });
}

function isWithoutSockets(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return ['EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'EINVAL', 'ENOSYS'].includes(code);
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It is gone already, which is what was wanted.
  }
}
