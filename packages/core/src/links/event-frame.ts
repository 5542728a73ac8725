import { ErrorCode, JuteWriter, SpecialXid, writeReplyHeader, writeWatcherEvent } from '@meerkat/protocol';
import type { WatchEvent } from '../watch/watch-manager.ts';

/** Encodes the event as a frame; called once per event, regardless of the number of watchers. */
export function encodeEvent(event: WatchEvent): Uint8Array {
  const writer = new JuteWriter(64 + event.path.length);
  const at = writer.beginFrame();
  writeReplyHeader(writer, SpecialXid.notification, event.zxid, ErrorCode.ok);
  writeWatcherEvent(writer, event.type, event.path);
  writer.endFrame(at);
  return writer.toBytes();
}
