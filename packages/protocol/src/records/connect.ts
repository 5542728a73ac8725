import { EMPTY_BYTES, type JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';

/** Bytes of a session password. */
export const PASSWORD_BYTES = 16;

/** The first frame of a connection, without a RequestHeader. */
export interface ConnectRequest {
  readonly protocolVersion: number;
  /** Last zxid the client saw; a server that is behind it closes the connection. */
  readonly lastZxidSeen: number;
  /** Requested session timeout in milliseconds. */
  readonly timeoutMs: number;
  /** 0n asks for a new session. */
  readonly sessionId: bigint;
  readonly password: Uint8Array;
  readonly readOnly: boolean;
  /** Clients up to 3.3 leave the last byte out; the answer then leaves it out too. */
  readonly hasReadOnlyByte: boolean;
}

export interface ConnectResponse {
  readonly protocolVersion: number;
  /** Negotiated session timeout in milliseconds; 0 when the session is refused or has expired. */
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Uint8Array;
  readonly readOnly: boolean;
  readonly hasReadOnlyByte: boolean;
}

/** Check `reader.failed` afterwards. */
export function readConnectRequest(reader: JuteReader): ConnectRequest {
  const protocolVersion = reader.int();
  const lastZxidSeen = reader.long();
  const timeoutMs = reader.int();
  const sessionId = reader.longBig();
  const password = reader.buffer()?.slice() ?? EMPTY_BYTES;
  const hasReadOnlyByte = !reader.failed && reader.remaining > 0;
  const readOnly = hasReadOnlyByte && reader.boolean();
  return { protocolVersion, lastZxidSeen, timeoutMs, sessionId, password, readOnly, hasReadOnlyByte };
}

export function writeConnectRequest(writer: JuteWriter, request: ConnectRequest): void {
  writer.int(request.protocolVersion);
  writer.long(request.lastZxidSeen);
  writer.int(request.timeoutMs);
  writer.longBig(request.sessionId);
  writer.buffer(request.password);
  if (request.hasReadOnlyByte) writer.boolean(request.readOnly);
}

export function readConnectResponse(reader: JuteReader): ConnectResponse {
  const protocolVersion = reader.int();
  const timeoutMs = reader.int();
  const sessionId = reader.longBig();
  const password = reader.buffer()?.slice() ?? EMPTY_BYTES;
  const hasReadOnlyByte = !reader.failed && reader.remaining > 0;
  const readOnly = hasReadOnlyByte && reader.boolean();
  return { protocolVersion, timeoutMs, sessionId, password, readOnly, hasReadOnlyByte };
}

export function writeConnectResponse(writer: JuteWriter, response: ConnectResponse): void {
  writer.int(response.protocolVersion);
  writer.int(response.timeoutMs);
  writer.longBig(response.sessionId);
  writer.buffer(response.password);
  if (response.hasReadOnlyByte) writer.boolean(response.readOnly);
}
