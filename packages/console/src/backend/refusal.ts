import { ZooKeeperError } from '@meerkat/client';
import type { Failure } from '../api/messages.ts';

/** A request that the console itself refuses. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly code: string;
  readonly path: string | null;

  constructor(status: number, code: string, message: string, path: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.path = path;
  }
}

/** The message for the page about an error, and its HTTP status. */
export function describeError(error: unknown): { readonly status: number; readonly failure: Failure } {
  if (error instanceof Refusal) {
    const { status, code, message, path } = error;
    return { status, failure: { code, message, path } };
  }
  if (error instanceof ZooKeeperError) {
    const { code, message, path } = error;
    return { status: STATUS[code] ?? 503, failure: { code, message, path } };
  }
  if (error instanceof Error && error.name === 'ArchiveError') {
    return { status: 409, failure: { code: 'archive', message: error.message, path: null } };
  }
  const { statusCode, message } = error as { readonly statusCode?: number; readonly message?: string };
  const status = statusCode ?? 500;
  const text =
    status < 500 ? (message ?? 'the request was refused') : `the console failed: ${message ?? String(error)}`;
  return { status, failure: { code: status < 500 ? 'refused' : 'failed', message: text, path: null } };
}

const STATUS: Readonly<Partial<Record<string, number>>> = {
  NONODE: 404,
  NOAUTH: 403,
  AUTHFAILED: 401,
  BADVERSION: 409,
  NODEEXISTS: 409,
  NOTEMPTY: 409,
  BADARGUMENTS: 400,
  INVALIDACL: 400,
  NOCHILDRENFOREPHEMERALS: 400,
  QUOTAEXCEEDED: 409,
  NEWCONFIGNOQUORUM: 409,
  RECONFIGINPROGRESS: 409,
  RECONFIGDISABLED: 501,
  UNIMPLEMENTED: 501,
};
