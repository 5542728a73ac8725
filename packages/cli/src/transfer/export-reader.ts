import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import type { TreeEntry } from '../copy/tree-entry.ts';
import { CommandFailure, fileFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { type ExportHeader, type ExportLine, parseExportLine } from './export-line.ts';
import { TreeOrder } from './tree-order.ts';

/** A file of exported znodes, packed or not. It may be read several times. */
export interface ExportFile {
  /** As it is named to people. */
  readonly name: string;
  readonly path: string;
}

/** The first line of an export. @throws CommandFailure, as `readExport` does */
export async function readExportHeader(file: ExportFile): Promise<ExportHeader> {
  for await (const { number, text } of linesOf(file)) return headerOf(parseExportLine(text), file, number);
  throw lineFailure(file, 1, 'the file is empty');
}

/**
 * The znodes of an export, in tree order.
 *
 * @throws CommandFailure that names file and line when a line is not what it has to be, and when the end is missing
 */
export async function* readExport(file: ExportFile): AsyncGenerator<TreeEntry, void> {
  const order = new TreeOrder();
  let header: ExportHeader | null = null;
  let znodes = 0;
  let isEnded = false;
  let last = 0;
  for await (const { number, text, isWhole } of linesOf(file)) {
    last = number;
    const line = parseExportLine(text);
    if (isEnded) throw lineFailure(file, number, 'there is something behind the end');
    if (line.kind === 'fault' && !isWhole) throw cutFailure(file, number, znodes);
    if (header === null) header = headerOf(line, file, number);
    else if (line.kind === 'fault') throw lineFailure(file, number, line.fault);
    else if (line.kind === 'header') throw lineFailure(file, number, 'a second header: two exports in one file');
    else if (line.kind === 'end') {
      isEnded = true;
      if (line.znodes !== znodes) {
        throw lineFailure(file, number, `the end counts ${line.znodes} znodes, and the file has ${znodes}`);
      }
    } else {
      const fault = order.check(line.entry.path);
      if (fault !== null) throw lineFailure(file, number, fault);
      znodes++;
      yield line.entry;
    }
  }
  if (header === null) throw lineFailure(file, 1, 'the file is empty');
  if (!isEnded) throw cutFailure(file, last, znodes);
}

function headerOf(line: ExportLine, file: ExportFile, number: number): ExportHeader {
  if (line.kind === 'header') return line.header;
  const found = line.kind === 'fault' ? line.fault : 'it is another line of one';
  throw lineFailure(file, number, `expected the first line of an export, which has "meerkatExport": ${found}`);
}

function cutFailure(file: ExportFile, number: number, znodes: number): CommandFailure {
  return lineFailure(
    file,
    number,
    `the file is cut off behind ${znodes} znodes: its last line, {"end":true,…}, is missing`,
  );
}

function lineFailure({ name }: ExportFile, number: number, fault: string): CommandFailure {
  return new CommandFailure(CommandExit.undecodable, `${name}, line ${number}: ${fault}`);
}

interface Line {
  /** From 1. */
  readonly number: number;
  readonly text: string;
  /** False for the last one when no line feed is behind it. */
  readonly isWhole: boolean;
}

const LINE_FEED = 0x0a;

/** Lines that are not blank. */
async function* linesOf(file: ExportFile): AsyncGenerator<Line, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const decode = (bytes: Uint8Array, number: number): string => {
    try {
      return decoder.decode(bytes);
    } catch (error) {
      const fault = lineFailure(file, number, 'it is no UTF-8');
      fault.cause = error;
      throw fault;
    }
  };
  let rest: Buffer = Buffer.alloc(0);
  let number = 1;
  for await (const chunk of unpacked(file)) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    // What is left of the chunk before has no line feed.
    let end = bytes.indexOf(LINE_FEED, rest.length);
    while (end !== -1) {
      const text = decode(bytes.subarray(start, end), number);
      if (text.trim() !== '') yield { number, text, isWhole: true };
      number++;
      start = end + 1;
      end = bytes.indexOf(LINE_FEED, start);
    }
    rest = bytes.subarray(start);
  }
  if (rest.length > 0) yield { number, text: new TextDecoder().decode(rest), isWhole: false };
}

/** The bytes of the file; gzip is known by its first two. */
async function* unpacked(file: ExportFile): AsyncGenerator<Buffer, void> {
  const stream = createReadStream(file.path, { highWaterMark: 256 * 1024 });
  let gunzip: ReturnType<typeof createGunzip> | null = null;
  try {
    const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const first = await chunks.next();
    if (first.done === true) return;
    if (first.value[0] !== 0x1f || first.value[1] !== 0x8b) {
      yield first.value;
      for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
      return;
    }
    gunzip = createGunzip();
    const packed = createReadStream(file.path);
    packed.on('error', (error) => gunzip?.destroy(error));
    packed.pipe(gunzip);
    for await (const chunk of gunzip) yield chunk as Buffer;
  } catch (error) {
    throw explain(file, error);
  } finally {
    stream.destroy();
    gunzip?.destroy();
  }
}

function explain({ name }: ExportFile, error: unknown): unknown {
  if (error instanceof CommandFailure) return error;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code?.startsWith('Z_') === true) {
    const what = code === 'Z_BUF_ERROR' ? 'the file is cut off' : `its gzip is damaged (${(error as Error).message})`;
    return new CommandFailure(CommandExit.undecodable, `${name}: ${what}`, error);
  }
  return syscall === undefined ? error : fileFailure(`cannot read ${name}`, error);
}
