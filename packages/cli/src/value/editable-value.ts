import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { prettyJson } from './pretty-json.ts';
import { decodeHex, oneLine } from './value-input.ts';
import { jsonOf, kindOf, textOf, unpack } from './value-kind.ts';

/**
 * Data as people edit them: text that ends with a line feed, as editors want it, and that becomes data of the same form
 * again. Gzip is unpacked and packed, JSON of one line is laid out and put on one line, in the style that it had.
 */
export interface EditableValue {
  readonly text: string;
  /** For the name of the file, by which editors choose their colours. */
  readonly suffix: '.json' | '.txt' | '.hex';
  /** The options of "meerkat set" that produce the same value from the file. */
  readonly setOptions: string;
  /** @throws CommandFailure when it is not what it was: no JSON, no hex */
  toData(text: string): Promise<Uint8Array>;
}

/** @throws CommandFailure for bytes that are no text, unless they are edited as hex */
export function makeEditable(data: Uint8Array, isHex: boolean, path: string): EditableValue {
  if (isHex)
    return { text: hexText(data), suffix: '.hex', setOptions: ' --hex', toData: async (text) => decodeHex(text) };
  if (kindOf(data) === 'gzip') {
    const unpacked = unpack(data) ?? data;
    const inner = makeEditable(unpacked, false, path);
    const pack = promisify(gzip);
    return {
      ...inner,
      setOptions: `${inner.setOptions} --gzip`,
      toData: async (text) => {
        const edited = await inner.toData(text);
        // Packed again, the same text may be other bytes.
        return Buffer.compare(edited, unpacked) === 0 ? data : new Uint8Array(await pack(edited));
      },
    };
  }
  const text = textOf(data);
  if (text === null) {
    throw new CommandFailure(
      CommandExit.undecodable,
      `the data of ${path} are no text: edit them as hex with --hex, or by "get" and "set --file"`,
    );
  }
  return jsonOf(text) === null ? editableText(text) : editableJson(text);
}

function editableText(text: string): EditableValue {
  const hasEnd = text.endsWith('\n');
  return {
    text: hasEnd || text === '' ? text : `${text}\n`,
    suffix: '.txt',
    setOptions: '',
    toData: async (edited) => encode(hasEnd ? edited : withoutEnd(edited)),
  };
}

function editableJson(text: string): EditableValue {
  const plain = editableText(text);
  const style = STYLES.find((candidate) => onOneLine(text, candidate) === text);
  return {
    text: style === undefined ? plain.text : `${prettyJson(text)}\n`,
    suffix: '.json',
    setOptions: ' --json',
    toData: async (edited) => {
      checkJson(edited);
      return style === undefined ? plain.toData(edited) : encode(onOneLine(edited, style));
    },
  };
}

interface Style {
  readonly comma: string;
  readonly colon: string;
}

/** As most programs write it: without white space, or with some as Python does. */
const STYLES: readonly Style[] = [
  { comma: ',', colon: ':' },
  { comma: ', ', colon: ': ' },
];

/** A string, a mark, or a number or word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Nothing but white space changes: numbers of any length stay as they are written. */
function onOneLine(json: string, { comma, colon }: Style): string {
  const tokens = json.match(TOKEN) ?? [];
  return tokens.map((token) => (token === ',' ? comma : token === ':' ? colon : token)).join('');
}

function checkJson(text: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new CommandFailure(
      CommandExit.undecodable,
      `it is no longer valid JSON: ${oneLine((error as Error).message)}`,
    );
  }
}

function withoutEnd(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}

const HEX_BYTES_A_LINE = 16;

/** Sixteen bytes a line, in groups of four. */
function hexText(data: Uint8Array): string {
  let text = '';
  for (const [i, byte] of data.entries()) {
    if (i > 0) text += i % HEX_BYTES_A_LINE === 0 ? '\n' : i % 4 === 0 ? '  ' : ' ';
    text += byte.toString(16).padStart(2, '0');
  }
  return text === '' ? '' : `${text}\n`;
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
