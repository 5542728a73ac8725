import { formatJavaDouble } from './java-text.ts';

/* JSON as Jackson's default pretty printer writes it, which is what ZooKeeper's admin server answers with. */

/** A number that Java holds as a double: 6 is written as `6.0`. */
export class JavaDouble {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** The fields of an object, each made when it is written. */
export type Fields = Iterable<readonly [key: string, value: JsonValue]>;

/** Fields in their order. An iterable of pairs is looked at as it is written, so that others are served in between. */
export class JsonFields {
  readonly entries: Fields;

  constructor(entries: Fields) {
    this.entries = entries;
  }
}

/** A list; it is looked at as it is written, too. */
export class JsonList {
  readonly items: Iterable<JsonValue>;

  constructor(items: Iterable<JsonValue>) {
    this.items = items;
  }
}

/** A bigint is written as a number with all its digits. */
export type JsonValue = string | number | bigint | boolean | null | JavaDouble | JsonFields | JsonList;

/** The text in pieces, each short. */
export function* formatJson(value: JsonValue, indent = ''): Generator<string> {
  if (value instanceof JsonFields) {
    const inner = `${indent}  `;
    let before = '{\n';
    for (const [key, field] of value.entries) {
      yield `${before}${inner}${JSON.stringify(key)} : `;
      yield* formatJson(field, inner);
      before = ',\n';
    }
    yield before === '{\n' ? '{ }' : `\n${indent}}`;
  } else if (value instanceof JsonList) {
    let before = '[ ';
    for (const item of value.items) {
      yield before;
      yield* formatJson(item, indent);
      before = ', ';
    }
    yield before === '[ ' ? '[ ]' : ' ]';
  } else if (value instanceof JavaDouble) {
    yield formatJavaDouble(value.value);
  } else if (typeof value === 'bigint') {
    yield value.toString();
  } else {
    yield JSON.stringify(value);
  }
}

/** Made one by one, as they are written. */
export function* mapped<From, To>(items: Iterable<From>, map: (item: From) => To): Iterable<To> {
  for (const item of items) yield map(item);
}
