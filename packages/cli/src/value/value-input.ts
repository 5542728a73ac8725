import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Command } from 'commander';
import { CommandFailure, fileFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';

/** What a command line says of the data to write: an argument and the options of `addValueOptions`. */
export interface ValueWords {
  /** `-` stands for standard input. */
  readonly value?: string | undefined;
  readonly file?: string;
  readonly hex?: boolean;
  readonly base64?: boolean;
  readonly json?: boolean;
  readonly gzip?: boolean;
}

/** Nothing that a znode can hold comes near; it keeps an endless input out of the memory. Bytes. */
const INPUT_BYTES_MAX = 64 * 1024 * 1024;

/** The options that say where data come from, and what is done with them on the way. */
export function addValueOptions(command: Command): Command {
  return command
    .option('--file <file>', 'take the data from a file, byte by byte; - for standard input')
    .option('--hex', 'the data are given as hex digits: 00ff 7f')
    .option('-b, --base64', 'the data are given in base64')
    .option('--json', 'refuse data that are no JSON')
    .option('--gzip', 'pack the data with gzip');
}

/**
 * The data that a command line gives, as bytes. Text is UTF-8; standard input and files are taken as they are, a line
 * feed at their end included.
 *
 * @returns null when it gives none
 */
export async function readValue(
  context: Pick<Context, 'io' | 'signal'>,
  words: ValueWords,
): Promise<Uint8Array | null> {
  const { value, file } = words;
  if (value !== undefined && file !== undefined) {
    throw new InvocationFailure('there are two values, an argument and --file; give one of them');
  }
  if (words.hex === true && words.base64 === true) throw new InvocationFailure('--hex and --base64 exclude each other');
  const given = await readGiven(context, value, file);
  if (given === null) {
    const needy = (['hex', 'base64', 'json', 'gzip'] as const).find((option) => words[option] === true);
    if (needy === undefined) return null;
    throw new InvocationFailure(`--${needy} needs data: an argument, or --file; - for standard input`);
  }
  const data = decode(given, words);
  if (words.json === true) checkJson(data);
  return words.gzip === true ? new Uint8Array(await promisify(gzip)(data)) : data;
}

async function readGiven(
  { io, signal }: Pick<Context, 'io' | 'signal'>,
  value: string | undefined,
  file: string | undefined,
): Promise<Uint8Array | null> {
  if (value === '-' || file === '-') {
    if (io.stdin.isTTY === true && io.stderr.isTTY === true)
      io.stderr.write('type the data; Ctrl-D on a new line ends them\n');
    return readInput(io.stdin, signal, 'standard input');
  }
  if (value !== undefined) return new TextEncoder().encode(value);
  if (file === undefined) return null;
  const stream = createReadStream(file);
  try {
    return await readInput(stream, signal, `the data of --file ${file}`);
  } finally {
    stream.destroy();
  }
}

/**
 * Everything up to the end of a stream, if it is no longer than a znode can be. Leaves no listener, and the stream paused.
 *
 * @param origin what the stream is, for people
 */
export function readInput(stream: Readable, signal: AbortSignal, origin: string): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const leave = (): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onError);
      signal.removeEventListener('abort', onAbort);
      stream.pause();
    };
    const onData = (chunk: Uint8Array | string): void => {
      const bytes = typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk;
      length += bytes.length;
      chunks.push(bytes);
      if (length <= INPUT_BYTES_MAX) return;
      leave();
      const limit = INPUT_BYTES_MAX / 1024 / 1024;
      reject(new CommandFailure(CommandExit.tooLarge, `${origin} is longer than ${limit} MiB: no znode holds it`));
    };
    const onEnd = (): void => {
      leave();
      resolve(new Uint8Array(Buffer.concat(chunks)));
    };
    const onError = (error: Error): void => {
      leave();
      reject(fileFailure(`cannot read ${origin}`, error));
    };
    const onAbort = (): void => {
      leave();
      reject(new DOMException(`interrupted while reading ${origin}`, 'AbortError'));
    };
    if (signal.aborted) return onAbort();
    if (stream.readableEnded || stream.destroyed) return resolve(new Uint8Array(0));
    signal.addEventListener('abort', onAbort);
    stream.on('data', onData).on('end', onEnd).on('error', onError);
  });
}

function decode(given: Uint8Array, words: ValueWords): Uint8Array {
  if (words.hex === true) return decodeHex(asText(given));
  if (words.base64 === true) return decodeBase64(asText(given));
  return given;
}

/** Digits in pairs; white space between them is for people. */
export function decodeHex(text: string): Uint8Array {
  const digits = text.replace(/\s+/g, '').replace(/^0x/i, '');
  if (digits.length % 2 !== 0 || /[^0-9a-f]/i.test(digits)) {
    throw undecodable(`the data are no hex digits in pairs, as in 00ff7f: ${excerpt(text)}`);
  }
  return new Uint8Array(Buffer.from(digits, 'hex'));
}

/** Of either alphabet, padded or not. */
function decodeBase64(text: string): Uint8Array {
  const digits = text.replace(/\s+/g, '').replace(/={1,2}$/, '');
  if (digits.length % 4 === 1 || /[^A-Za-z0-9+/_-]/.test(digits)) {
    throw undecodable(`the data are no base64: ${excerpt(text)}`);
  }
  return new Uint8Array(Buffer.from(digits, 'base64'));
}

function checkJson(data: Uint8Array): void {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data));
  } catch (error) {
    throw undecodable(`the data are no JSON: ${oneLine((error as Error).message)}`);
  }
}

function asText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

function excerpt(text: string): string {
  const short = text.trim().slice(0, 40);
  return JSON.stringify(short.length < text.trim().length ? `${short}…` : short);
}

/** Parsers show a part of the text as it is. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ');
}

function undecodable(message: string): CommandFailure {
  return new CommandFailure(CommandExit.undecodable, message);
}
