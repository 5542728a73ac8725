import type { Cell } from '../output/column.ts';
import { textOf } from './value-kind.ts';

/**
 * Data in JSON, so that nothing is lost: as text when they are text, in base64 otherwise.
 * Everything that reports or reads data in JSON has these two fields.
 */
export interface ValueRecord {
  readonly data: string;
  readonly encoding: 'utf8' | 'base64';
}

export function valueRecord(data: Uint8Array): ValueRecord & Record<string, Cell> {
  const text = textOf(data);
  return text === null
    ? { data: Buffer.from(data.buffer, data.byteOffset, data.length).toString('base64'), encoding: 'base64' }
    : { data: text, encoding: 'utf8' };
}
