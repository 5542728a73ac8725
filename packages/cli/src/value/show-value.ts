import type { Report } from '../output/report.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { hexdump } from './hexdump.ts';
import { prettyJson } from './pretty-json.ts';
import { kindOf, textOf, unpack } from './value-kind.ts';

/**
 * How data are shown to people.
 *
 * - `auto`: on a terminal what is best to read; elsewhere the exact bytes.
 * - `raw`: the exact bytes, and nothing behind them.
 * - `text`: UTF-8, unpacked when it is gzip. Refused when it is no text.
 * - `json`: laid out over lines, unpacked when it is gzip. Refused when it is no JSON.
 * - `hex`, `base64`: the exact bytes in one line.
 * - `hexdump`: the exact bytes as `hexdump -C` shows them.
 */
export const VALUE_FORMS = ['auto', 'raw', 'text', 'json', 'hex', 'base64', 'hexdump'] as const;
export type ValueForm = (typeof VALUE_FORMS)[number];

export function parseValueForm(text: string, origin: string): ValueForm {
  const form = VALUE_FORMS.find((known) => known === text);
  if (form !== undefined) return form;
  throw new InvocationFailure(`${origin}: expected one of ${VALUE_FORMS.join(', ')}, found "${text}"`);
}

/**
 * Writes data to standard output.
 *
 * @param as `auto`, unless the person said something else
 * @throws CommandFailure when they are not what `as` says
 */
export function showValue(data: Uint8Array, as: ValueForm, report: Report): Promise<void> | undefined {
  return report.write(as === 'auto' && !report.isTerminal ? data : formatValue(data, as));
}

/**
 * What is to be written for data; `auto` means: for people.
 *
 * @returns text ends with a line feed, unless there are no data
 * @throws CommandFailure when they are not what `as` says
 */
export function formatValue(data: Uint8Array, as: ValueForm): string | Uint8Array {
  switch (as) {
    case 'auto':
      return readable(data);
    case 'raw':
      return data;
    case 'text':
      return withLineFeed(textFrom(data));
    case 'json':
      return withLineFeed(jsonFrom(data));
    case 'hex':
      return withLineFeed(bufferOf(data).toString('hex'));
    case 'base64':
      return withLineFeed(bufferOf(data).toString('base64'));
    case 'hexdump':
      return hexdump(data);
  }
}

function readable(data: Uint8Array): string {
  switch (kindOf(data)) {
    case 'empty':
      return '';
    case 'gzip':
      return readable(unpack(data) ?? data);
    case 'json':
      return withLineFeed(prettyJson(textOf(data) ?? ''));
    case 'text':
      return withLineFeed(textOf(data) ?? '');
    case 'binary':
      return hexdump(data);
  }
}

/** Decodes data as text, gunzipped if necessary. @throws CommandFailure when they are not UTF-8 */
export function textFrom(data: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(unpacked(data));
  } catch (error) {
    const message = 'the data are no UTF-8 text: --as hexdump shows them, --as raw gives the bytes';
    throw new CommandFailure(CommandExit.undecodable, message, error);
  }
}

/** Decodes data as JSON, indented. @throws CommandFailure when they are not JSON */
export function jsonFrom(data: Uint8Array): string {
  const text = textFrom(data);
  try {
    JSON.parse(text);
  } catch (error) {
    throw new CommandFailure(CommandExit.undecodable, `the data are no JSON: ${(error as Error).message}`, error);
  }
  return prettyJson(text);
}

function unpacked(data: Uint8Array): Uint8Array {
  return kindOf(data) === 'gzip' ? (unpack(data) ?? data) : data;
}

function withLineFeed(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}
