import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { fileFailure, InvocationFailure } from '../run/command-failure.ts';

/**
 * Reads a file of JSON that people write.
 *
 * @throws InvocationFailure that says where in the file the mistake is: line and column, or the field
 */
export function readJsonFile<Schema extends v.GenericSchema>(schema: Schema, path: string): v.InferOutput<Schema> {
  const result = v.safeParse(schema, parse(path));
  if (result.success) return result.output;
  const [issue] = result.issues;
  const place = v.getDotPath(issue);
  throw new InvocationFailure(`${path}: ${place === null ? '' : `${place}: `}${describeIssue(issue)}`);
}

function parse(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw fileFailure(`cannot read ${path}`, error);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as SyntaxError;
    throw new InvocationFailure(`${path}:${placeOf(text, message)}: no JSON: ${withoutPlace(message)}`, error);
  }
}

/** Line and column, counted from 1; the end of the text when the parser names no position. */
function placeOf(text: string, message: string): string {
  const position = /at position (\d+)/.exec(message)?.[1];
  const before = text.slice(0, position === undefined ? text.trimEnd().length : Number(position));
  const lines = before.split('\n');
  return `${lines.length}:${(lines.at(-1)?.length ?? 0) + 1}`;
}

function withoutPlace(message: string): string {
  return message.replace(/(?: in JSON)? at position .*$/, '').replace(' JSON input', ' the file');
}

function describeIssue(issue: v.BaseIssue<unknown>): string {
  // The schema has a message of its own.
  if (issue.type === 'strict_object' && issue.expected === 'never') return 'there is no such field';
  if (issue.type === 'strict_object' && issue.received === 'undefined') return 'it is missing';
  if (issue.kind === 'validation') return issue.message;
  return `expected ${issue.expected ?? 'something else'}, found ${issue.received}`;
}
