/*
 * Describes the output of Java's ObjectOutputStream. The grammar is that of "Java Object Serialization Specification",
 * chapter 6.4: class descriptions, objects with their fields, strings, arrays, enums, blocks of data, references.
 */

interface JavaField {
  readonly type: string;
  readonly name: string;
}

interface JavaClass {
  readonly name: string;
  readonly flags: number;
  readonly fields: readonly JavaField[];
  readonly parent: JavaClass | null;
}

/** A text like that of an object in a debugger; it says where it cannot be parsed further. */
export function describeJavaObject(bytes: Uint8Array): string {
  const reader = new JavaReader(bytes);
  const parts: string[] = [];
  try {
    while (!reader.isAtEnd && parts.length < 1000) parts.push(reader.content(0));
  } catch (error) {
    parts.push(`… (it cannot be read from byte ${reader.at} on: ${(error as Error).message})`);
  }
  return parts.join('\n');
}

class JavaReader {
  readonly #view: DataView;
  readonly #handles: (JavaClass | string)[] = [];
  #at = 4;

  constructor(bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get at(): number {
    return this.#at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#view.byteLength;
  }

  content(depth: number): string {
    if (depth > 50) throw new Error('it is nested too deep');
    const tag = this.#byte();
    switch (tag) {
      case 0x70:
        return 'null';
      case 0x71:
        return this.#shownHandle(this.#handle());
      case 0x73:
        return this.#object(depth);
      case 0x74:
        return this.#string(this.#short());
      case 0x7c: {
        this.#int();
        return this.#string(this.#int());
      }
      case 0x75:
        return this.#array(depth);
      case 0x76: {
        const described = this.#classDescription();
        this.#handles.push('class');
        return `class ${described?.name ?? 'null'}`;
      }
      case 0x77:
        return this.#block(this.#byte());
      case 0x7a:
        return this.#block(this.#int());
      case 0x7e: {
        const described = this.#classDescription();
        this.#handles.push(described?.name ?? 'enum');
        return `${described?.name ?? 'enum'}.${this.content(depth + 1).replaceAll('"', '')}`;
      }
      default:
        throw new Error(`a byte 0x${tag.toString(16)} begins nothing that is known`);
    }
  }

  #object(depth: number): string {
    const described = this.#classDescription();
    if (described === null) throw new Error('an object has no class');
    this.#handles.push(`a ${described.name} from above`);
    const chain: JavaClass[] = [];
    for (let at: JavaClass | null = described; at !== null; at = at.parent) chain.unshift(at);
    const pad = '  '.repeat(depth + 1);
    const lines: string[] = [];
    for (const one of chain) {
      if ((one.flags & 0x04) !== 0 && (one.flags & 0x08) === 0) throw new Error(`${one.name} has a form of its own`);
      if ((one.flags & 0x02) !== 0) {
        for (const { type, name } of one.fields) lines.push(`${pad}${name}: ${this.#value(type, depth + 1)}`);
      }
      if ((one.flags & 0x09) !== 0) lines.push(...this.#annotations(depth + 1).map((text) => `${pad}+ ${text}`));
    }
    return lines.length === 0
      ? `${described.name} {}`
      : `${described.name} {\n${lines.join('\n')}\n${'  '.repeat(depth)}}`;
  }

  #annotations(depth: number): string[] {
    const found: string[] = [];
    while (this.#view.getUint8(this.#at) !== 0x78) found.push(this.content(depth));
    this.#at++;
    return found;
  }

  #array(depth: number): string {
    const described = this.#classDescription();
    this.#handles.push('an array from above');
    const length = this.#int();
    const type = described?.name.slice(1) ?? 'I';
    if (length > this.#view.byteLength) throw new Error(`an array has ${length} elements`);
    if (type === 'B') {
      this.#at += length;
      return `byte[${length}]`;
    }
    const items = Array.from({ length }, () => this.#value(type, depth + 1));
    return `[${items.join(', ')}]`;
  }

  /** null for no class. */
  #classDescription(): JavaClass | null {
    const tag = this.#byte();
    if (tag === 0x70) return null;
    if (tag === 0x71) {
      const handle = this.#handle();
      if (typeof handle === 'string') throw new Error('a reference to a class leads to something else');
      return handle;
    }
    if (tag === 0x7d) throw new Error('a proxy class');
    if (tag !== 0x72) throw new Error(`a byte 0x${tag.toString(16)} where a class should be`);
    const name = this.#utf(this.#short());
    this.#at += 8;
    const place = this.#handles.push('class') - 1;
    const flags = this.#byte();
    const fields = Array.from({ length: this.#short() }, (): JavaField => {
      const type = String.fromCharCode(this.#byte());
      const field = { type, name: this.#utf(this.#short()) };
      if (type === 'L' || type === '[') this.content(0);
      return field;
    });
    this.#annotations(0);
    const described: { -readonly [Key in keyof JavaClass]: JavaClass[Key] } = { name, flags, fields, parent: null };
    this.#handles[place] = described;
    described.parent = this.#classDescription();
    return described;
  }

  #value(type: string, depth: number): string {
    switch (type[0]) {
      case 'B':
        return `${this.#view.getInt8(this.#skip(1))}`;
      case 'C':
        return `'${String.fromCharCode(this.#view.getUint16(this.#skip(2)))}'`;
      case 'D':
        return `${this.#view.getFloat64(this.#skip(8))}`;
      case 'F':
        return `${this.#view.getFloat32(this.#skip(4))}`;
      case 'I':
        return `${this.#view.getInt32(this.#skip(4))}`;
      case 'J':
        return `${this.#view.getBigInt64(this.#skip(8))}`;
      case 'S':
        return `${this.#view.getInt16(this.#skip(2))}`;
      case 'Z':
        return this.#byte() === 0 ? 'false' : 'true';
      default:
        return this.content(depth);
    }
  }

  #string(length: number): string {
    const text = this.#utf(length);
    this.#handles.push(JSON.stringify(text));
    return JSON.stringify(text);
  }

  #block(length: number): string {
    this.#skip(length);
    return `${length} bytes of data`;
  }

  #handle(): JavaClass | string {
    const handle = this.#handles[this.#int() - 0x7e0000];
    if (handle === undefined) throw new Error('a reference leads nowhere');
    return handle;
  }

  #shownHandle(handle: JavaClass | string): string {
    return typeof handle === 'string' ? handle : `class ${handle.name}`;
  }

  #utf(length: number): string {
    const at = this.#skip(length);
    return new TextDecoder().decode(new Uint8Array(this.#view.buffer, this.#view.byteOffset + at, length));
  }

  #byte(): number {
    return this.#view.getUint8(this.#skip(1));
  }

  #short(): number {
    return this.#view.getUint16(this.#skip(2));
  }

  #int(): number {
    return this.#view.getInt32(this.#skip(4));
  }

  #skip(length: number): number {
    const at = this.#at;
    if (length < 0 || at + length > this.#view.byteLength) throw new Error('it ends too early');
    this.#at += length;
    return at;
  }
}
