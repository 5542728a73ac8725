import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { TlsOptions } from './options.ts';
import { StoreError } from './stores.ts';
import { readTlsSettings, type TlsSettings } from './tls-settings.ts';

/** As `readTlsSettings`, in the same thread or in another one. */
export type SettingsReader = (options: TlsOptions, nowMs: number) => Promise<TlsSettings>;

export interface CredentialsEvents {
  /** Connections from now on are to be shown these, and checked against them. */
  onRenewed(settings: TlsSettings): void;
  onNotice(message: string): void;
  onWarning(message: string): void;
}

/**
 * What this server shows and trusts on one kind of port, for as long as it runs: read again when the files change.
 *
 * Files are looked at every two seconds and followed through symbolic links, so that a link that is set to another directory,
 * as Kubernetes does it, counts as a change. What cannot be used leaves everything as it was, and is reported.
 */
export class Credentials {
  readonly #options: TlsOptions;
  readonly #events: CredentialsEvents;
  readonly #readAgain: SettingsReader;
  #settings: TlsSettings;
  /** Of the files that the settings are made of, or that could not be used. */
  #stamp: string;
  #digest: string;
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;
  /** The day on which it was said last that a certificate expires. */
  #warnedDay = -1;

  /**
   * @param readAgain reads changed files, while others may be served
   * @throws StoreError
   */
  static async open(
    options: TlsOptions,
    events: CredentialsEvents,
    readAgain: SettingsReader = readTlsSettings,
  ): Promise<Credentials> {
    const files = filesOf(options);
    const seen = { stamp: await stampOf(files), digest: await digestOf(files) };
    return new Credentials(options, events, readAgain, await readTlsSettings(options, Date.now()), seen);
  }

  private constructor(
    options: TlsOptions,
    events: CredentialsEvents,
    readAgain: SettingsReader,
    settings: TlsSettings,
    { stamp, digest }: { readonly stamp: string; readonly digest: string },
  ) {
    this.#options = options;
    this.#events = events;
    this.#readAgain = readAgain;
    this.#settings = settings;
    this.#stamp = stamp;
    this.#digest = digest;
    events.onNotice(`TLS: ${settings.description}`);
    this.#warn();
    this.#arm();
  }

  get settings(): TlsSettings {
    return this.#settings;
  }

  /** Whole days until the first of the certificates that are shown expires; negative afterwards. */
  get daysLeft(): number {
    return Math.floor((this.#settings.expiresAtMs - Date.now()) / DAY_MS);
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #arm(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.#look(), this.#options.renewalPollMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    try {
      if (this.#options.renews) await this.#maybeRenew();
      this.#warnOfExpiry();
    } catch (error) {
      // What is wrong with the files may not be what kept them from being read.
      if (!(error instanceof StoreError)) this.#stamp = this.#digest = '';
      this.#events.onWarning(
        `TLS: the new files are not used, those read before stay in force: ${(error as Error).message}`,
      );
    }
    this.#arm();
  }

  async #maybeRenew(): Promise<void> {
    const files = filesOf(this.#options);
    const stamp = await stampOf(files);
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    const digest = await digestOf(files);
    if (digest === this.#digest) return;
    this.#digest = digest;
    const settings = await this.#readAgain(this.#options, Date.now());
    if (this.#isStopped) return;
    this.#settings = settings;
    this.#events.onRenewed(settings);
    this.#events.onNotice(`TLS: renewed: ${settings.description}`);
    this.#warnedDay = -1;
    this.#warn();
  }

  #warn(): void {
    for (const warning of this.#settings.warnings) this.#events.onWarning(`TLS: ${warning}`);
    this.#warnOfExpiry();
  }

  /** Once a day, from 30 days on. */
  #warnOfExpiry(): void {
    const { daysLeft } = this;
    const today = Math.floor(Date.now() / DAY_MS);
    if (daysLeft >= WARNING_DAYS || this.#warnedDay === today) return;
    this.#warnedDay = today;
    const when = new Date(this.#settings.expiresAtMs).toISOString();
    const left = daysLeft < 0 ? `expired at ${when}` : `expires in ${daysLeft} days, at ${when}`;
    this.#events.onWarning(
      `TLS: the certificate of ${this.#options.keyStore.path} ${left}: put a new one in its place`,
    );
  }
}

const DAY_MS = 86_400_000;
const WARNING_DAYS = 30;

function filesOf({ keyStore, trustStore, crlPath }: TlsOptions): readonly string[] {
  const paths = [keyStore.path, keyStore.passwordPath, trustStore.path, trustStore.passwordPath, crlPath];
  return paths.filter((path) => path !== null);
}

/** Changes with every change of a file, and sometimes without. */
async function stampOf(files: readonly string[]): Promise<string> {
  const stamps = files.map(async (path) => {
    try {
      const { ino, size, mtimeMs, ctimeMs } = await stat(path);
      return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code);
    }
  });
  return (await Promise.all(stamps)).join('\n');
}

async function digestOf(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const path of files) {
    const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => Buffer.from(String(error.code)));
    hash.update(`${path} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex');
}
