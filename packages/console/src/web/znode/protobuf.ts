import protobuf from 'protobufjs';

/**
 * Decodes a message to JSON, by a schema given as text.
 *
 * The library parses the schema and the numbers; the fields are decoded here, because it would generate code from the
 * schema, which the policy of this page forbids.
 *
 * @throws Error that says what is wrong with schema or data
 */
export function decodeMessage(schema: string, message: string, bytes: Uint8Array): string {
  const { root } = protobuf.parse(schema, { keepCase: true });
  root.resolveAll();
  return JSON.stringify(decode(root.lookupType(message), protobuf.Reader.create(bytes), bytes.length, 0), null, 2);
}

type Fields = Record<string, unknown>;

function decode(type: protobuf.Type, reader: protobuf.Reader, end: number, depth: number): Fields {
  if (depth > 50) throw new Error('messages are nested too deep');
  const made: Fields = {};
  while (reader.pos < end) {
    const tag = reader.uint32();
    const field = type.fieldsById[tag >>> 3];
    if (field === undefined) {
      made[`(unknown field ${tag >>> 3})`] = 'skipped';
      reader.skipType(tag & 7);
    } else if (field instanceof protobuf.MapField) {
      const [key, value] = decodeEntry(field, reader, depth);
      made[field.name] = { ...(made[field.name] as Fields | undefined), [key]: value };
    } else if (field.repeated) {
      const list = (made[field.name] as unknown[] | undefined) ?? [];
      made[field.name] = list;
      decodeItems(field, tag & 7, reader, depth, list);
    } else made[field.name] = decodeValue(field, reader, depth);
  }
  return made;
}

/** Repeated numbers may be packed. */
function decodeItems(field: protobuf.Field, wireType: number, reader: protobuf.Reader, depth: number, list: unknown[]) {
  const isPacked = wireType === 2 && field.type in protobuf.types.packed;
  if (!isPacked) {
    list.push(decodeValue(field, reader, depth));
    return;
  }
  const end = reader.uint32() + reader.pos;
  while (reader.pos < end) list.push(decodeValue(field, reader, depth));
}

function decodeEntry(field: protobuf.MapField, reader: protobuf.Reader, depth: number): [key: string, value: unknown] {
  const end = reader.uint32() + reader.pos;
  let key = '';
  let value: unknown = null;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) key = `${readScalar(field.keyType, reader)}`;
    else if (tag >>> 3 === 2) value = decodeValue(field, reader, depth);
    else reader.skipType(tag & 7);
  }
  return [key, value];
}

function decodeValue(field: protobuf.FieldBase, reader: protobuf.Reader, depth: number): unknown {
  const { resolvedType, type } = field;
  if (resolvedType instanceof protobuf.Enum) {
    const value = reader.int32();
    return resolvedType.valuesById[value] ?? value;
  }
  if (resolvedType instanceof protobuf.Type) {
    const end = reader.uint32() + reader.pos;
    return decode(resolvedType, reader, end, depth + 1);
  }
  return readScalar(type, reader);
}

function readScalar(type: string, reader: protobuf.Reader): unknown {
  switch (type) {
    case 'double':
    case 'float':
    case 'int32':
    case 'uint32':
    case 'sint32':
    case 'fixed32':
    case 'sfixed32':
    case 'bool':
    case 'string':
      return reader[type]();
    case 'int64':
    case 'uint64':
    case 'sint64':
    case 'fixed64':
    case 'sfixed64':
      return reader[type]().toString();
    case 'bytes':
      return btoa(String.fromCharCode(...reader.bytes()));
    default:
      throw new Error(`a field is of the unknown type ${type}`);
  }
}
