import type { ServerView } from '@meerkat/core';
import { formatSessionId } from '../audit/audit-line.ts';
import type { Answer, QuestionHandler } from '../http/http-thread.ts';
import type { Question, Uploaded } from '../http/messages.ts';
import type { Exposition } from '../metrics/exposition.ts';
import { NODE_CLOCK } from '../node/clock.ts';
import type { ArchiveCommand } from './archive-command.ts';
import type { Refusal } from './authorization.ts';
import { ADMIN_COMMANDS, type AdminCommand, type CommandSource } from './commands.ts';
import { DRAIN_NAMES, type DrainCommand, type DrainName, isDrainName } from './drain-command.ts';
import type { EndSessionCommand } from './end-session-command.ts';
import { checkHealth, type HealthSource } from './health.ts';
import { type Fields, formatJson, JsonFields, JsonList } from './java-json.ts';
import { makeOpenApi } from './openapi.ts';
import type { RestoreCommand } from './restore-command.ts';
import type { SnapshotCommand } from './snapshot-command.ts';

export interface AdminDeskParts {
  readonly source: CommandSource;
  readonly health: HealthSource;
  readonly exposition: Exposition;
  readonly snapshot: SnapshotCommand;
  readonly restore: RestoreCommand;
  readonly archive: ArchiveCommand;
  readonly drain: DrainCommand;
  readonly endSession: EndSessionCommand;
  readonly commandUrl: string;
}

type Command = Extract<Question, { readonly kind: 'command' }>;

/** Answers what is asked by HTTP. */
export class AdminDesk implements QuestionHandler {
  readonly #parts: AdminDeskParts;
  readonly #byName: ReadonlyMap<string, AdminCommand>;

  constructor(parts: AdminDeskParts) {
    this.#parts = parts;
    this.#byName = new Map(ADMIN_COMMANDS.flatMap((command) => command.names.map((name) => [name, command] as const)));
  }

  answer(question: Question): Answer | Promise<Answer> {
    const { health, exposition } = this.#parts;
    switch (question.kind) {
      case 'command':
        return this.#onCommand(question);
      case 'uploaded':
        return this.#onUploaded(question.uploaded);
      case 'metrics':
        return { ...PLAIN, pieces: exposition.format(NODE_CLOCK.monotonicMs()) };
      case 'health':
        return { ...JSON_HEAD, pieces: [JSON.stringify(checkHealth(health))] };
      case 'last-zxid':
        return { ...PLAIN, pieces: [String(this.#parts.source.view.lastZxid)] };
      case 'openapi':
        return { ...JSON_HEAD, pieces: [JSON.stringify(makeOpenApi(this.#parts.commandUrl), null, 2)] };
      case 'index':
        return { ...PLAIN, contentType: 'text/html; charset=utf-8', pieces: this.#index() };
    }
  }

  onThreadLost(): void {
    this.#parts.restore.abandon();
  }

  stop(): void {
    this.#parts.drain.stop();
  }

  *#index(): Generator<string> {
    const names = [
      ...ADMIN_COMMANDS.map(({ names: [name = ''] }) => name),
      SNAPSHOT,
      RESTORE,
      ARCHIVE,
      END_SESSION,
      ...DRAIN_NAMES,
    ];
    for (const name of names.toSorted()) yield `<a href="${this.#parts.commandUrl}/${name}">${name}</a>\n<br/>\n`;
  }

  #onCommand(question: Command): Answer | Promise<Answer> {
    const { method, name } = question;
    if (name === RESTORE || name === 'rest') return this.#onRestore(question);
    if (name === END_SESSION) return this.#onEndSession(question);
    if (isDrainName(name)) return this.#onDrain(name, question);
    if (method !== 'GET' && method !== 'HEAD') {
      return { ...PLAIN, status: 405, headers: { allow: 'GET, HEAD' }, pieces: [`${name} is asked for with GET\n`] };
    }
    if (name === SNAPSHOT || name === 'snap') return this.#onSnapshot(question);
    if (name === ARCHIVE) return this.#onArchive(question);
    const command = this.#byName.get(name);
    if (command === undefined) return commandAnswer(name, [], `Unknown command: ${name}`);
    const [primary = name] = command.names;
    const { source } = this.#parts;
    if (command.needsNoServer !== true && !source.view.isServing) return commandAnswer(primary, [], NOT_SERVING);
    return commandAnswer(primary, whileServing(command.fields(source, question.query), command, source.view), null);
  }

  async #onSnapshot(question: Command): Promise<Answer> {
    const { snapshot } = this.#parts;
    const outcome = await snapshot.run(question);
    if (isRefusal(outcome)) return commandAnswer(SNAPSHOT, [], outcome.error, outcome.status);
    const headers = { last_zxid: `0x${outcome.zxid.toString(16)}`, snapshot_size: String(outcome.bytes) };
    if (question.query['streaming'] === 'false') return { ...commandAnswer(SNAPSHOT, [], null), headers };
    return { ...PLAIN, contentType: 'application/octet-stream', headers, file: outcome.path, pieces: [] };
  }

  #onRestore(question: Command): Answer {
    const { method, hasBody } = question;
    if (method !== 'POST') {
      return { ...PLAIN, status: 405, headers: { allow: 'POST' }, pieces: ['restore is asked for with POST\n'] };
    }
    const outcome = this.#parts.restore.begin(question, hasBody);
    if (isRefusal(outcome)) return commandAnswer(RESTORE, [], outcome.error, outcome.status);
    return { ...PLAIN, upload: outcome, pieces: [] };
  }

  async #onUploaded(uploaded: Uploaded): Promise<Answer> {
    const outcome = await this.#parts.restore.finish(uploaded);
    if (isRefusal(outcome)) return commandAnswer(RESTORE, [], outcome.error, outcome.status);
    return commandAnswer(RESTORE, [['last_zxid', outcome.lastZxid]], null);
  }

  #onDrain(name: DrainName, question: Command): Answer {
    const outcome = this.#parts.drain.run(name, question.method === 'POST', question.query, question);
    if (isRefusal(outcome)) {
      const answer = commandAnswer(name, [], outcome.error, outcome.status);
      return outcome.status === 405 ? { ...answer, headers: { allow: 'POST' } } : answer;
    }
    const { isDraining, connections, closed } = outcome;
    const fields: Fields = [
      ['is_draining', isDraining],
      ['connections', connections],
      ['closed', closed],
    ];
    return commandAnswer(name, fields, null);
  }

  async #onEndSession(question: Command): Promise<Answer> {
    const outcome = await this.#parts.endSession.run(question.method === 'POST', question.query, question);
    if (isRefusal(outcome)) return commandAnswer(END_SESSION, [], outcome.error, outcome.status);
    const { sessionId, ephemerals, paths, isEnded } = outcome;
    const fields: Fields = [
      ['session', formatSessionId(sessionId)],
      ['ephemerals', ephemerals],
      ['ephemeral_paths', new JsonList(paths)],
      ['is_ended', isEnded],
    ];
    return commandAnswer(END_SESSION, fields, null);
  }

  async #onArchive(question: Command): Promise<Answer> {
    const outcome = await this.#parts.archive.run(question.query, question);
    if (isRefusal(outcome)) return commandAnswer(ARCHIVE, [], outcome.error, outcome.status);
    if ('fields' in outcome) return commandAnswer(ARCHIVE, outcome.fields, null);
    const { path, part } = outcome;
    return { ...PLAIN, contentType: 'application/octet-stream', file: path, filePart: part, pieces: [] };
  }
}

function isRefusal(outcome: object): outcome is Refusal {
  return 'status' in outcome;
}

/** What ZooKeeper answers: the fields, then which command it was and what was wrong. An error of the command itself comes first. */
function commandAnswer(name: string, fields: Fields, error: string | null, status = 200): Answer {
  return { ...JSON_HEAD, status, pieces: formatJson(new JsonFields(withOutcome(name, fields, error))) };
}

function* withOutcome(name: string, fields: Fields, error: string | null): Fields {
  let hasError = false;
  for (const field of fields) {
    hasError ||= field[0] === 'error';
    yield field;
  }
  yield ['command', name];
  if (!hasError) yield ['error', error];
}

/** A role may end while a long answer is written: it is short then. */
function* whileServing(fields: Fields, command: AdminCommand, view: ServerView): Fields {
  for (const field of fields) {
    if (command.needsNoServer !== true && !view.isServing) return;
    yield field;
  }
}

const SNAPSHOT = 'snapshot';
const RESTORE = 'restore';
const ARCHIVE = 'archive';
const END_SESSION = 'end_session';
const NOT_SERVING = 'This ZooKeeper instance is not currently serving requests';
const JSON_HEAD = { status: 200, contentType: 'application/json', headers: {}, file: null };
const PLAIN = { status: 200, contentType: 'text/plain; charset=utf-8', headers: {}, file: null };
