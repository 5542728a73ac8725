import { CreateMode, JuteWriter, OPEN_ACL, OpCode, type Request } from '@meerkat/protocol';
import type { Arrival, TestClient, TestServer } from './test-server.ts';

export const create = (path: string, flags: number = CreateMode.persistent, bytes = 3): Request => ({
  op: OpCode.create,
  path,
  data: new Uint8Array(bytes),
  acl: OPEN_ACL,
  flags,
  ttl: -1,
});
export const getData = (path: string, watch = false): Request => ({ op: OpCode.getData, path, watch });

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
