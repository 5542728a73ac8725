import type { Codec } from './codec.ts';
import { SchemaError, type StandardSchema } from './standard-schema.ts';

/**
 * JSON as UTF-8, optionally validated by a schema: any validator that supports Standard Schema (zod, valibot, arktype
 * and others). The schema validates data that is read; values that are written are only checked by the compiler.
 *
 * Empty data is not valid JSON.
 *
 * @example
 * const server = json(z.object({ host: z.string(), port: z.number() }));
 * await client.create('/servers/a', { host: '10.0.0.7', port: 8080 }, { codec: server });
 * const { data } = await client.get('/servers/a', { codec: server }); // data: { host: string; port: number }
 */
export function json<T = unknown>(): Codec<T>;
export function json<T>(schema: StandardSchema<T>): Codec<T>;
export function json<T>(schema?: StandardSchema<T>): Codec<T> {
  if (schema !== undefined) checkSchema(schema);
  return {
    encode(value) {
      // JSON.stringify returns undefined for undefined, functions and symbols, contrary to its type.
      const written: string | undefined = JSON.stringify(value);
      if (written === undefined) throw new TypeError(`a value of type ${typeof value} has no JSON`);
      return ENCODER.encode(written);
    },
    decode(data) {
      if (data === null || data.length === 0) throw new SyntaxError('the znode is empty, which is no JSON');
      const value: unknown = JSON.parse(DECODER.decode(data));
      return schema === undefined ? (value as T) : validate(schema, value);
    },
  };
}

/** Without a compiler, an object that is not a standard schema would look like a fault of the data. */
function checkSchema(schema: StandardSchema<unknown>): void {
  if (typeof schema?.['~standard']?.validate === 'function') return;
  throw new TypeError('json: the schema does not speak Standard Schema: it has no method `~standard`.validate');
}

function validate<T>(schema: StandardSchema<T>, value: unknown): T | Promise<T> {
  const result = schema['~standard'].validate(value);
  return result instanceof Promise ? result.then(accept) : accept(result);
}

function accept<T>(result: Awaited<ReturnType<StandardSchema<T>['~standard']['validate']>>): T {
  if (result.issues !== undefined) throw new SchemaError(result.issues);
  return result.value;
}

const ENCODER = new TextEncoder();
/** Drops a byte order mark, which some editors write and JSON does not allow. */
const DECODER = new TextDecoder('utf-8', { fatal: true });
