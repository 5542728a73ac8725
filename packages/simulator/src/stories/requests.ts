/** Short builders of requests, for clients that a story scripts on the wire. */
import {
  CreateMode,
  type CreateRequest,
  type DeleteRequest,
  type MultiOp,
  type MultiRequest,
  OPEN_ACL,
  OpCode,
  type Request,
  type SetDataRequest,
} from '@meerkat/protocol';

export const SYNC: Request = { op: OpCode.sync, path: '/' };
export const CLOSE: Request = { op: OpCode.closeSession };

export function create(path: string, flags: CreateMode = CreateMode.persistent, data = ''): CreateRequest {
  return { op: OpCode.create2, path, data: bytesOf(data), acl: OPEN_ACL, flags, ttl: -1 };
}

export function set(path: string, data: string, version = -1): SetDataRequest {
  return { op: OpCode.setData, path, data: bytesOf(data), version };
}

export function remove(path: string, version = -1): DeleteRequest {
  return { op: OpCode.delete, path, version };
}

export function check(path: string, version: number): MultiOp {
  return { op: OpCode.check, path, version };
}

export function multi(...ops: MultiOp[]): MultiRequest {
  return { op: OpCode.multi, ops };
}

export function get(path: string, watch = false): Request {
  return { op: OpCode.getData, path, watch };
}

export function exists(path: string, watch = false): Request {
  return { op: OpCode.exists, path, watch };
}

export function children(path: string, watch = false): Request {
  return { op: OpCode.getChildren2, path, watch };
}

/** The data in the reply to a getData, as text. */
export function dataIn(body: Uint8Array): string {
  const length = new DataView(body.buffer, body.byteOffset).getInt32(0);
  return new TextDecoder().decode(body.subarray(4, 4 + Math.max(0, length)));
}

/** Of a multi that has failed: the error of each of its parts. */
export function multiErrorsIn(body: Uint8Array): readonly number[] {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const errors: number[] = [];
  // (int −1, boolean false, int error, int error)*, and a header that marks the end.
  for (let at = 0; view.getInt8(at + 4) === 0; at += 13) errors.push(view.getInt32(at + 9));
  return errors;
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
