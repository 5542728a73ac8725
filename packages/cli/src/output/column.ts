/** What a field can be; in JSON as it is, in tables and fields as text. A bigint never: zxids are hex text. */
export type Cell = string | number | boolean | null | readonly Cell[] | { readonly [name: string]: Cell };

/** One field of the things that a command reports. */
export interface Column<T> {
  /** The name in JSON, and the header of a table. Scripts rely on it. */
  readonly name: string;
  readonly value: (item: T) => Cell;
  /** In tables, when the value itself would be hard to read: a time, a size. */
  readonly text?: (item: T) => string;
  readonly align?: 'left' | 'right';
  /** Only in tables, or only in data (JSON and fields). Default: in both. */
  readonly only?: 'table' | 'data';
}

/** The value of a cell in a table or field. */
export function cellText(value: Cell): string {
  if (value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The columns of tables. */
export function tableColumns<T>(columns: readonly Column<T>[]): readonly Column<T>[] {
  return columns.filter(({ only }) => only !== 'data');
}

/** The columns of JSON and fields. */
export function dataColumns<T>(columns: readonly Column<T>[]): readonly Column<T>[] {
  return columns.filter(({ only }) => only !== 'table');
}
