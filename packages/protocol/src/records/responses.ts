import type { JuteReader } from '../jute/reader.ts';
import { type JuteWriter, putInt, putLong } from '../jute/writer.ts';

/** Bytes of a ReplyHeader: int xid, long zxid, int err. */
export const REPLY_HEADER_BYTES = 16;

export interface ReplyHeader {
  readonly xid: number;
  /** Last zxid that the answering server had applied; 0 and −1 in the cases of the protocol's table. */
  readonly zxid: number;
  readonly error: number;
}

export function writeReplyHeader(writer: JuteWriter, xid: number, zxid: number, error: number): void {
  writer.ensure(REPLY_HEADER_BYTES);
  const { bytes, position } = writer;
  putInt(bytes, position, xid);
  putLong(bytes, position + 4, zxid);
  putInt(bytes, position + 12, error);
  writer.position = position + REPLY_HEADER_BYTES;
}

export function readReplyHeader(reader: JuteReader): ReplyHeader {
  return { xid: reader.int(), zxid: reader.long(), error: reader.int() };
}

/** What happened to a watched znode (Watcher.Event.EventType). */
export const EventType = {
  none: -1,
  nodeCreated: 1,
  nodeDeleted: 2,
  nodeDataChanged: 3,
  nodeChildrenChanged: 4,
} as const;
export type EventType = (typeof EventType)[keyof typeof EventType];

/** The only state in events of a server (KeeperState.SyncConnected). */
export const SYNC_CONNECTED = 3;

export interface WatcherEvent {
  readonly type: number;
  readonly state: number;
  readonly path: string;
}

export function writeWatcherEvent(writer: JuteWriter, type: EventType, path: string): void {
  writer.int(type);
  writer.int(SYNC_CONNECTED);
  writer.ustring(path);
}

export function readWatcherEvent(reader: JuteReader): WatcherEvent {
  return { type: reader.int(), state: reader.int(), path: reader.ustring() ?? '' };
}

/** An identity of a connection, as returned by whoAmI: `{ustring authScheme, ustring user}`. */
export interface ClientInfo {
  readonly scheme: string;
  readonly user: string;
}

export function writeClientInfos(writer: JuteWriter, infos: readonly ClientInfo[]): void {
  writer.int(infos.length);
  for (const info of infos) {
    writer.ustring(info.scheme);
    writer.ustring(info.user);
  }
}
