import type { TraceEvent } from '@meerkat/core';

/** A trace event in one line: its kind, and its fields that are no objects. */
export function describeEvent(event: TraceEvent): string {
  switch (event.kind) {
    // The most frequent ones.
    case 'committed':
    case 'proposed':
      return `${event.kind} zxid=0x${event.zxid.toString(16)}`;
    case 'log-synced':
      return `log-synced txns=${event.txns} bytes=${event.bytes}`;
    default:
      return describeFields(event);
  }
}

function describeFields(event: TraceEvent): string {
  const parts = Object.entries(event).flatMap(([key, value]) => {
    if (key === 'kind' || value === null || value === undefined) return [];
    if (value instanceof Error) return [`${key}=${value.message}`];
    if (Array.isArray(value)) return [`${key}=${value.join(',')}`];
    if (typeof value === 'object') return 'host' in value ? [`${key}=${value.host}:${value.port}`] : [];
    if (typeof value === 'bigint' || /zxid|from/i.test(key)) return [`${key}=0x${value.toString(16)}`];
    return [`${key}=${String(value)}`];
  });
  return [event.kind, ...parts].join(' ');
}
