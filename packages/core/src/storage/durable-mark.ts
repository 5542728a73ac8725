/**
 * `durableZxid`: up to where this server has reported the log as durable to others, stored outside of the log itself.
 *
 *     batch synced ─► mark written, not synced ─► acknowledged ─► … ─► mark synced, once a second
 *
 * A log whose end is damaged cannot show whether something is missing from it. The mark can. It never claims more than
 * is known, and a start continues without a mark that cannot be read or written:
 *
 * 1. It is written after the sync of the txns that it covers. So whatever a crash leaves of it, it is never too high.
 * 2. It is in the kernel before anything is acknowledged: when the process ends, it is as high as what was
 *    acknowledged. When the machine crashes, it is what was synced a second before, or later.
 * 3. It is lowered, durably, before a truncation or an installation removes anything.
 * 4. It is valid only while `acceptedEpoch` is the one that it names: an Apache server that has used the directory
 *    since may have truncated it, and has then accepted a later epoch.
 *
 * The file has one line of 64 bytes, overwritten in place; a device writes it whole or not at all:
 *
 *     <zxid, hexadecimal> <acceptedEpoch> <Adler-32 of the text before, hexadecimal>, padded with spaces
 */
import { formatZxid, maxZxid, parseZxid, ZXID_NONE, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import type { Durable } from '../base/durable.ts';
import type { Disk, DiskDone, DiskError, DiskFile, Ports } from '../base/ports.ts';
import { ADLER_START, adler32 } from './adler32.ts';
import { EpochFiles } from './epoch-files.ts';

export const DURABLE_MARK_NAME = 'durableZxid';

const MARK_BYTES = 64;
/** Delay after which a written mark is synced. */
const SYNC_AFTER_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;
const MARK_TEXT = /^([0-9a-f]{1,16}) (\d{1,16}) ([0-9a-f]{8}) *\n$/;

export interface DurableMarkText {
  readonly zxid: Zxid;
  readonly acceptedEpoch: number;
}

export class DurableMark {
  readonly #ports: Pick<Ports, 'disk' | 'clock' | 'trace'>;
  readonly #directory: string;
  readonly #line: Uint8Array = new Uint8Array(MARK_BYTES);
  #file: DiskFile | null = null;
  #zxid: Zxid = ZXID_NONE;
  #acceptedEpoch = 0;
  #dueMs = NEVER;

  /** @param directory that of the epoch files */
  constructor(ports: Pick<Ports, 'disk' | 'clock' | 'trace'>, directory: string) {
    this.#ports = ports;
    this.#directory = directory;
  }

  /** Sets the mark, durably. After an error it has the new text, the old one, or none. */
  settle({ zxid, acceptedEpoch }: DurableMarkText, done: DiskDone): void {
    const { disk } = this.#ports;
    this.#zxid = zxid;
    this.#acceptedEpoch = acceptedEpoch;
    const finish = (error: DiskError | null): void => {
      if (error !== null) this.#giveUp();
      done(error);
    };
    const write = (file: DiskFile, then: DiskDone): void => {
      this.#file = file;
      const line = new Uint8Array(MARK_BYTES);
      writeMark(line, this.#zxid, this.#acceptedEpoch);
      let failure: DiskError | null = null;
      const note = (error: DiskError | null): void => {
        failure ??= error;
      };
      if (file.size > MARK_BYTES) file.truncate(MARK_BYTES, note);
      file.write(0, line, note);
      file.sync((error) => then(failure ?? error));
    };
    if (this.#file !== null) {
      write(this.#file, finish);
      return;
    }
    const path = `${this.#directory}/${DURABLE_MARK_NAME}`;
    disk.open(path, { readOnly: false }, (error, opened) => {
      if (error === null) return write(opened, finish);
      if (error.code !== 'ENOENT') return finish(error);
      disk.create(path, (createError, created) => {
        if (createError !== null) return finish(createError);
        write(created, (writeError) => {
          if (writeError !== null) finish(writeError);
          else disk.syncDirectory(this.#directory, finish);
        });
      });
    });
  }

  /** Lowers the mark, durably, before the log loses what is after `zxid`. */
  lower(zxid: Zxid, done: DiskDone): void {
    const lowest = zxid < this.#zxid ? zxid : this.#zxid;
    this.settle({ zxid: lowest, acceptedEpoch: this.#acceptedEpoch }, done);
  }

  /** Everything up to `zxid` is durable. */
  raise(zxid: Durable<Zxid>): void {
    if (zxid <= this.#zxid) return;
    this.#zxid = zxid;
    this.#write();
  }

  /** The file `acceptedEpoch` durably holds this epoch. */
  enter(acceptedEpoch: number): void {
    this.#acceptedEpoch = acceptedEpoch;
    this.#write();
  }

  /** When `onTick` has to be called; Infinity = never. Monotonic milliseconds. */
  get dueMs(): number {
    return this.#dueMs;
  }

  onTick(nowMs: number): void {
    if (nowMs < this.#dueMs) return;
    this.#dueMs = NEVER;
    this.#file?.sync((error) => {
      if (error !== null) this.#fail(error);
    });
  }

  /** Syncs what was written; `done` is called in a later event. */
  close(done: () => void): void {
    const file = this.#file;
    this.#file = null;
    this.#dueMs = NEVER;
    if (file === null) {
      this.#ports.disk.list(this.#directory, done);
      return;
    }
    file.sync(() => {
      file.close();
      done();
    });
  }

  #write(): void {
    if (this.#file === null) return;
    // In whole milliseconds, the resolution of `onTick`.
    if (this.#dueMs === NEVER) this.#dueMs = Math.floor(this.#ports.clock.monotonicMs()) + SYNC_AFTER_MS;
    writeMark(this.#line, this.#zxid, this.#acceptedEpoch);
    this.#file.note(0, this.#line, this.#fail);
  }

  readonly #fail = ({ message }: DiskError): void => {
    if (this.#file === null) return;
    this.#giveUp();
    this.#ports.trace.emit({
      kind: 'warning',
      message: `${DURABLE_MARK_NAME} lags behind what is acknowledged until the next start: ${message}`,
    });
  };

  /** Stops updating the mark, which then claims less than is true, never more. */
  #giveUp(): void {
    this.#file?.close();
    this.#file = null;
    this.#dueMs = NEVER;
  }
}

/**
 * Reads the lower bound of what this server has acknowledged.
 *
 * @param done `durable` is ZXID_NONE when the mark is no longer valid, and null when there is no readable mark; `fault`
 *   says why it cannot be relied on, if something is wrong
 */
export function readDurableMark(
  disk: Disk,
  directory: string,
  done: (durable: Zxid | null, fault: string | null) => void,
): void {
  const path = `${directory}/${DURABLE_MARK_NAME}`;
  disk.open(path, { readOnly: true }, (error, file) => {
    if (error !== null) return done(null, error.code === 'ENOENT' ? null : error.message);
    file.read(0, MARK_BYTES + 1, (readError, bytes) => {
      file.close();
      if (readError !== null) return done(null, readError.message);
      const mark = parseMark(bytes);
      if (mark === null) return done(null, `${path} is damaged`);
      new EpochFiles(disk, directory).read('acceptedEpoch', (epochError, acceptedEpoch) => {
        // An error is reported when the epoch is read for itself.
        const holds = epochError === null && acceptedEpoch === mark.acceptedEpoch;
        done(holds ? mark.zxid : ZXID_NONE, epochError === null ? faultOfEpoch(path, mark, acceptedEpoch) : null);
      });
    });
  });
}

/** Epochs only increase: a mark of a later one shows that the file was lost, damaged or restored. */
function faultOfEpoch(path: string, mark: DurableMarkText, acceptedEpoch: number | null): string | null {
  if (mark.acceptedEpoch <= (acceptedEpoch ?? 0)) return null;
  const found = acceptedEpoch === null ? 'is missing' : `holds ${acceptedEpoch}`;
  return `acceptedEpoch ${found} although ${path} says that it was ${mark.acceptedEpoch}`;
}

function parseMark(bytes: Uint8Array): DurableMarkText | null {
  const [, zxidDigits = '', epochDigits = '', checksum] = MARK_TEXT.exec(String.fromCharCode(...bytes)) ?? [];
  const zxid = parseZxid(zxidDigits);
  const acceptedEpoch = Number(epochDigits);
  const end = zxidDigits.length + 1 + epochDigits.length;
  if (zxid === null || checksum !== checksumOf(bytes, end)) return null;
  return { zxid, acceptedEpoch };
}

/** @param line the whole file */
function writeMark(line: Uint8Array, zxid: Zxid, acceptedEpoch: number): void {
  line.fill(SPACE);
  const end = writeText(line, 0, `${formatZxid(maxZxid(zxid, ZXID_ZERO))} ${acceptedEpoch}`);
  writeText(line, end + 1, checksumOf(line, end));
  line[MARK_BYTES - 1] = LINE_FEED;
}

/** @returns the end of the text */
function writeText(bytes: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) bytes[at + i] = text.charCodeAt(i);
  return at + text.length;
}

function checksumOf(bytes: Uint8Array, end: number): string {
  return adler32(ADLER_START, bytes, 0, end).toString(16).padStart(8, '0');
}

const SPACE = 0x20;
const LINE_FEED = 0x0a;
