import {
  type Acl,
  CreateMode,
  type CreateRequest,
  type DeleteRequest,
  JuteWriter,
  OPEN_ACL,
  OpCode,
  type Request,
  type SetDataRequest,
} from '@meerkat/protocol';
import type { Arrival, TestClient, TestServer } from './test-server.ts';

/* Short constructors of requests. */

export function create(
  path: string,
  flags: number = CreateMode.persistent,
  { bytes = 3, acl = OPEN_ACL }: { readonly bytes?: number; readonly acl?: readonly Acl[] } = {},
): CreateRequest {
  return { op: OpCode.create, path, data: new Uint8Array(bytes), acl, flags, ttl: -1 };
}

export function setData(path: string, version = -1): SetDataRequest {
  return { op: OpCode.setData, path, data: new Uint8Array(5), version };
}

export function remove(path: string, version = -1): DeleteRequest {
  return { op: OpCode.delete, path, version };
}

export function getData(path: string, watch = false): Request {
  return { op: OpCode.getData, path, watch };
}

export function exists(path: string, watch = false): Request {
  return { op: OpCode.exists, path, watch };
}

/* Their results. */

export function errorsOf(arrivals: readonly Arrival[]): number[] {
  return arrivals.flatMap((arrival) => (arrival.kind === 'reply' ? [arrival.header.error] : []));
}

export function ask(server: TestServer, client: TestClient, request: Request): number | undefined {
  client.send(request);
  server.run();
  return errorsOf(client.takeArrivals())[0];
}

export function frame(...ints: number[]): Uint8Array {
  const writer = new JuteWriter();
  const at = writer.beginFrame();
  for (const int of ints) writer.int(int);
  writer.endFrame(at);
  return writer.toBytes();
}
