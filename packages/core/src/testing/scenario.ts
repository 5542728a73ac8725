import {
  CreateMode,
  ErrorCode,
  EventType,
  JuteReader,
  type MultiOp,
  OPEN_ACL,
  OpCode,
  type Request,
  readAclList,
  readStat,
  SpecialXid,
  type Stat,
} from '@meerkat/protocol';
import { type Arrival, type TestClient, TestServer } from './test-server.ts';

/**
 * Plays a scenario: blocks of commands, each followed by `----` and the resulting output.
 *
 *     open a timeout=5000          a client and its session        advance 3000      time passes, in milliseconds
 *     resume b a                   b comes back as a's session     drop a            a's process is gone
 *     a create /x hello ephemeral  a request, sent at once         hold-disk         nothing becomes durable …
 *     a setData /x hi version=3                                    release-disk      … until here
 *     a multi create /x 1; check /y 3
 */
export function playScenario(text: string): string {
  const player = new Player();
  const blocks = text
    .trim()
    .split(/\n\n+/)
    .map((block) => block.split(/\n?^----$/m)[0]!);
  return `${blocks.map((commands) => `${commands}\n----\n${player.playAll(commands.split('\n')).join('\n')}`).join('\n\n')}\n`;
}

class Player {
  readonly #server = new TestServer({ extendedTypesEnabled: true });
  readonly #clients = new Map<string, TestClient>();
  readonly #ops = new Map<string, number>();
  readonly #sessions = new Map<string, { id: bigint; password: Uint8Array }>();

  playAll(lines: readonly string[]): readonly string[] {
    const said: string[] = [];
    for (const line of lines) if (!line.startsWith('#')) this.#play(line, said);
    return said;
  }

  #play(line: string, said: string[]): void {
    const [word, ...rest] = line.split(' ') as [string, ...string[]];
    switch (word) {
      case 'open': {
        const client = this.#server.open();
        this.#clients.set(rest[0]!, client);
        client.connect({ timeoutMs: Number(optionOf(rest, 'timeout') ?? 10_000) });
        break;
      }
      case 'resume': {
        const client = this.#server.open();
        this.#clients.set(rest[0]!, client);
        client.connect({
          session: this.#sessions.get(rest[1]!)!,
          timeoutMs: Number(optionOf(rest, 'timeout') ?? 10_000),
        });
        break;
      }
      case 'drop':
        this.#clients.get(rest[0]!)!.drop();
        break;
      case 'advance':
        this.#server.advance(Number(rest[0]));
        break;
      case 'hold-disk':
        this.#server.isDiskHeld = true;
        break;
      case 'release-disk':
        this.#server.isDiskHeld = false;
        break;
      default: {
        const request = parseRequest(rest.join(' '));
        const client = this.#clients.get(word)!;
        const xid = request.op === OpCode.ping ? client.send(request, SpecialXid.ping) : client.send(request);
        this.#ops.set(`${word}#${xid}`, request.op);
      }
    }
    this.#server.run();
    for (const [name, client] of this.#clients) {
      if (client.session !== null) this.#sessions.set(name, client.session);
      for (const arrival of client.takeArrivals()) said.push(`${name}  ${this.#format(name, arrival)}`);
    }
  }

  #format(name: string, arrival: Arrival): string {
    switch (arrival.kind) {
      case 'closed':
        return 'connection closed';
      case 'session': {
        const { timeoutMs } = arrival.response;
        return timeoutMs > 0 ? `session, timeout ${timeoutMs}` : 'session refused';
      }
      case 'event':
        return `event ${nameOf(EventType, arrival.event.type)} ${arrival.event.path} zxid ${arrival.zxid}`;
      case 'reply': {
        const { xid, zxid, error } = arrival.header;
        const op = this.#ops.get(`${name}#${xid}`) ?? 0;
        const body = error === ErrorCode.ok ? formatBody(op, new JuteReader(arrival.body)) : '';
        return `#${xid} ${nameOf(OpCode, op)} ${nameOf(ErrorCode, error)} zxid ${zxid}${body}`;
      }
    }
  }
}

function nameOf(table: Readonly<Record<string, number>>, value: number): string {
  return Object.entries(table).find(([, code]) => code === value)?.[0] ?? String(value);
}

function optionOf(words: readonly string[], name: string): string | undefined {
  return words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

function parseRequest(text: string): Request {
  const words = text.split(' ');
  const [name, path = ''] = words as [string, string?];
  const version = Number(optionOf(words, 'version') ?? -1);
  const watch = words.includes('watch');
  switch (name) {
    case 'create':
    case 'delete':
    case 'setData':
      return parseWrite(text) as Request;
    case 'setACL': {
      const [scheme, id, perms] = words[2]!.split(':');
      return { op: OpCode.setACL, path, acl: [{ scheme: scheme!, id: id!, perms: Number(perms) }], version };
    }
    case 'multi':
      return { op: OpCode.multi, ops: text.slice('multi '.length).split('; ').map(parseWrite) };
    case 'exists':
    case 'getData':
    case 'getChildren':
    case 'getChildren2':
      return { op: OpCode[name], path, watch };
    case 'sync':
    case 'getACL':
    case 'getAllChildrenNumber':
      return { op: OpCode[name], path };
    case 'getEphemerals':
      return { op: OpCode.getEphemerals, prefix: path };
    case 'addWatch':
      return { op: OpCode.addWatch, path, mode: words.includes('recursive') ? 1 : 0 };
    case 'setWatches':
      return {
        op: OpCode.setWatches2,
        relativeZxid: Number(optionOf(words, 'seen')),
        dataWatches: optionOf(words, 'data')?.split(',') ?? [],
        existWatches: optionOf(words, 'exist')?.split(',') ?? [],
        childWatches: optionOf(words, 'child')?.split(',') ?? [],
        persistentWatches: [],
        persistentRecursiveWatches: [],
      };
    case 'closeSession':
    case 'ping':
      return { op: OpCode[name] };
    default:
      throw new Error(`a scenario has no command "${name}"`);
  }
}

function parseWrite(text: string): MultiOp {
  const words = text.split(' ');
  const [name, path = '', value] = words as [string, string?, string?];
  const version = Number(optionOf(words, 'version') ?? -1);
  switch (name) {
    case 'create': {
      const mode = (Object.keys(CreateMode) as (keyof typeof CreateMode)[]).find((key) => words.includes(key));
      const flags = CreateMode[mode ?? 'persistent'];
      const ttl = optionOf(words, 'ttl');
      const data = ENCODER.encode(value ?? '');
      if (ttl !== undefined) return { op: OpCode.createTTL, path, data, acl: OPEN_ACL, flags, ttl: Number(ttl) };
      const op = flags === CreateMode.container ? OpCode.createContainer : OpCode.create;
      return { op, path, data, acl: OPEN_ACL, flags, ttl: -1 };
    }
    case 'delete':
      return { op: OpCode.delete, path, version };
    case 'setData':
      return { op: OpCode.setData, path, data: ENCODER.encode(value ?? ''), version };
    case 'check':
      return { op: OpCode.check, path, version: Number(value) };
    default:
      throw new Error(`a multi has no operation "${name}"`);
  }
}

function formatBody(op: number, reader: JuteReader): string {
  switch (op) {
    case OpCode.create:
    case OpCode.sync:
      return ` ${reader.ustring()}`;
    case OpCode.createContainer:
    case OpCode.createTTL:
      return ` ${reader.ustring()} ${formatStat(readStat(reader))}`;
    case OpCode.getData: {
      const data = reader.buffer();
      return ` ${data === null ? 'null' : `"${DECODER.decode(data)}"`} ${formatStat(readStat(reader))}`;
    }
    case OpCode.exists:
    case OpCode.setData:
    case OpCode.setACL:
      return ` ${formatStat(readStat(reader))}`;
    case OpCode.getChildren:
    case OpCode.getChildren2:
    case OpCode.getEphemerals:
      return ` [${readTexts(reader).sort().join(' ')}]${op === OpCode.getChildren2 ? ` ${formatStat(readStat(reader))}` : ''}`;
    case OpCode.getACL:
      return ` ${readAclList(reader)
        .map((acl) => `${acl.scheme}:${acl.id}:${acl.perms}`)
        .join(',')}`;
    case OpCode.getAllChildrenNumber:
      return ` ${reader.int()}`;
    case OpCode.multi:
      return formatResults(reader);
    default:
      return '';
  }
}

function formatResults(reader: JuteReader): string {
  const results: string[] = [];
  for (;;) {
    const type = reader.int();
    const isDone = reader.boolean();
    const error = reader.int();
    if (isDone) return ` (${results.join('; ')})`;
    if (type === OpCode.error) {
      reader.int();
      results.push(nameOf(ErrorCode, error));
    } else if (type === OpCode.create) results.push(`create ${reader.ustring()}`);
    else if (type === OpCode.create2) results.push(`create ${reader.ustring()} ${formatStat(readStat(reader))}`);
    else if (type === OpCode.setData) results.push(`setData ${formatStat(readStat(reader))}`);
    else results.push(nameOf(OpCode, type));
  }
}

function readTexts(reader: JuteReader): string[] {
  return Array.from({ length: reader.vectorLength(4) }, () => reader.ustring() ?? 'null');
}

function formatStat(stat: Stat): string {
  const owner = stat.ephemeralOwner === 0n ? '' : ' ephemeral';
  return (
    `{c ${stat.czxid} m ${stat.mzxid} p ${stat.pzxid} versions ${stat.version}/${stat.cversion}/${stat.aversion} ` +
    `${stat.dataLength} bytes ${stat.numChildren} children${owner}}`
  );
}
