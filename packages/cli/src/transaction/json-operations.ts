import type { Acl } from '@meerkat/client';
import * as v from 'valibot';
import { InvocationFailure } from '../run/command-failure.ts';
import { parseAclText } from '../value/acl-text.ts';
import type { Operation } from './operation.ts';

/*
 * [ { "op": "check", "path": "/a", "version": 3 },
 *   { "op": "create", "path": "/b", "data": "value", "mode": "ephemeral", "sequential": true, "acl": "world:anyone:r" },
 *   { "op": "set", "path": "/c", "data": "AAH/", "encoding": "base64", "version": 1 },
 *   { "op": "delete", "path": "/d" } ]
 *
 * as one array, or an object a line.
 */
const PATH = v.string();
const VERSION = v.optional(v.pipe(v.number(), v.integer()));
const VALUE = { data: v.optional(v.string(), ''), encoding: v.optional(v.picklist(['utf8', 'base64']), 'utf8') };

const OPERATION = v.variant('op', [
  v.strictObject({ op: v.literal('check'), path: PATH, version: VERSION }),
  v.strictObject({ op: v.literal('delete'), path: PATH, version: VERSION }),
  v.strictObject({ op: v.literal('set'), path: PATH, version: VERSION, ...VALUE, data: v.string() }),
  v.strictObject({
    op: v.literal('create'),
    path: PATH,
    ...VALUE,
    mode: v.optional(v.picklist(['persistent', 'ephemeral', 'container']), 'persistent'),
    sequential: v.optional(v.boolean(), false),
    ttlMs: v.optional(v.pipe(v.number(), v.integer())),
    acl: v.optional(v.string()),
  }),
]);

/** Whether a text is meant as JSON: no operation in words begins so. */
export function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

/** @throws InvocationFailure with the line, or the place in the array */
export function parseJsonOperations(text: string, source: string): readonly Operation[] {
  if (text.trimStart().startsWith('[')) {
    const values = parseJson(text, source);
    if (!Array.isArray(values)) throw new InvocationFailure(`${source}: expected an array of operations`);
    return values.map((value: unknown, i) => makeOperation(value, `operation ${i + 1}`, source));
  }
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    const origin = `line ${i + 1}`;
    return [makeOperation(parseJson(line, `${source}, ${origin}`), origin, source)];
  });
}

function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvocationFailure(`${place}: it is no JSON: ${(error as Error).message}`, error);
  }
}

function makeOperation(value: unknown, origin: string, source: string): Operation {
  const parsed = v.safeParse(OPERATION, value);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    const field = v.getDotPath(issue);
    throw new InvocationFailure(`${source}, ${origin}: ${field === null ? '' : `${field}: `}${issue.message}`);
  }
  const { output } = parsed;
  const { path } = output;
  switch (output.op) {
    case 'check':
    case 'delete':
      return { kind: output.op, origin, path, version: output.version };
    case 'set':
      return { kind: 'set', origin, path, data: decode(output), version: output.version };
    case 'create': {
      const { mode, sequential, ttlMs, acl } = output;
      const shape = {
        mode,
        sequential,
        ttlMs,
        acl: acl === undefined ? undefined : parseAcl(acl, `${source}, ${origin}`),
      };
      return { kind: 'create', origin, path, data: decode(output), shape };
    }
  }
}

function parseAcl(text: string, place: string): readonly Acl[] {
  try {
    return parseAclText(text);
  } catch (error) {
    throw error instanceof InvocationFailure ? new InvocationFailure(`${place}: ${error.message}`) : error;
  }
}

function decode({ data, encoding }: { readonly data: string; readonly encoding: 'utf8' | 'base64' }): Uint8Array {
  return new Uint8Array(Buffer.from(data, encoding));
}
