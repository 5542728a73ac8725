import type { HistoryEntry, Operation, Violation } from '@meerkat/simulator';

/** Formats one entry as a line: `12.345 c3 sent set /w/2 (operation 17) xid 5`. */
export function formatEntry(entry: HistoryEntry): string {
  const at = (entry.atMs / 1000).toFixed(3);
  return 'client' in entry ? `${at} ${entry.client} ${describeEntry(entry)}` : `${at} ${describeEntry(entry)}`;
}

function describeEntry(entry: HistoryEntry): string {
  switch (entry.kind) {
    case 'fault':
      return entry.what;
    case 'invoked':
      return `${entry.operation.client} asks for ${describeOperation(entry.operation)}: ${requestOf(entry.operation)}`;
    case 'completed': {
      const { operation } = entry;
      const { error, result } = operation;
      const outcome =
        error === null ? json(result) : `${error.code}, ${error.outcome === 'unknown' ? 'in doubt' : 'nothing done'}`;
      return `${operation.client} has ${describeOperation(operation)} answered: ${outcome}`;
    }
    case 'connected': {
      const { server, connection, sessionId, isNewSession, lastZxidSeen } = entry;
      const session = `${isNewSession ? 'new ' : ''}session 0x${sessionId.toString(16)}`;
      return `connected to ${server}, connection ${connection}, ${session}, has seen ${hex(lastZxidSeen)}`;
    }
    case 'refused':
      return `is reported by ${entry.server} that its session 0x${entry.sessionId.toString(16)} is over`;
    case 'ping':
      return `pings on connection ${entry.connection}`;
    case 'pong':
      return `has its ping answered on connection ${entry.connection}`;
    case 'expired':
      return `a leader has ended session 0x${entry.sessionId.toString(16)}`;
    case 'stir':
      return `the change of everything that is watched ${entry.phase} behind ${hex(entry.zxid)}`;
    case 'disconnected':
      return `connection ${entry.connection} is gone`;
    case 'sent': {
      const what = entry.operation === null ? `op code ${entry.opCode}` : describeOperation(entry.operation);
      return `sent ${what} on connection ${entry.connection}, xid ${entry.xid}`;
    }
    case 'reply':
      return `got the reply to xid ${entry.xid} on connection ${entry.connection}: zxid ${hex(entry.zxid)}, error ${entry.errorCode}`;
    case 'rearmed': {
      const { data, exist, child, persistent, recursive } = entry;
      return `sets its watches again from ${hex(entry.relativeZxid)} on: ${json({ data, exist, child, persistent, recursive })}`;
    }
    case 'event':
      return `got the event ${entry.type} ${entry.path} of ${entry.zxid === null ? 'no zxid' : hex(entry.zxid)}`;
    case 'notified':
      return `tells its program ${entry.type} ${entry.path} of ${entry.zxid === null ? 'no zxid' : hex(entry.zxid)}, for ${describeOperation(entry.operation)}`;
    case 'state':
      return `is ${entry.state}: ${entry.reason}`;
  }
}

/**
 * The last lines of a history that relate to a violation: those of the clients and paths that it names, and the faults
 * of servers and links.
 */
export function linesAbout(
  violation: Violation,
  entries: readonly HistoryEntry[],
  linesMax: number,
): readonly string[] {
  const names = violation.message.match(/\bc\d+\b|\/w[\w/-]*/g) ?? [];
  const until = entries.findIndex(({ atMs }) => atMs > violation.atMs + AFTER_MS);
  const before = violation.atMs > 0 && until >= 0 ? entries.slice(0, until) : entries;
  const lines: string[] = [];
  for (let i = before.length - 1; i >= 0 && lines.length < linesMax; i--) {
    const entry = before[i]!;
    const line = formatEntry(entry);
    if (entry.kind === 'fault' || names.length === 0 || names.some((name) => hasWord(line, name))) lines.push(line);
  }
  return lines.reverse();
}

/** Milliseconds after a violation whose entries are still shown: watch events follow the reply. */
const AFTER_MS = 20;

function hasWord(line: string, word: string): boolean {
  const at = line.indexOf(word);
  return at >= 0 && !/[\w/-]/.test(line[at + word.length] ?? ' ');
}

function describeOperation({ request, id }: Operation): string {
  return `${request.op}${'path' in request ? ` ${request.path}` : ''} (operation ${id})`;
}

function requestOf({ request }: Operation): string {
  return json(request);
}

function hex(zxid: number): string {
  return `0x${zxid.toString(16)}`;
}

function json(value: unknown): string {
  return JSON.stringify(value, (_key, field: unknown) => (typeof field === 'bigint' ? hex(Number(field)) : field));
}
