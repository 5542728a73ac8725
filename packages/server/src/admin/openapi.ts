import { MEERKAT_VERSION } from '../version.ts';
import { ADMIN_COMMANDS } from './commands.ts';

/** What the admin port answers, as an OpenAPI document. */
export function makeOpenApi(commandUrl: string): object {
  const commands = ADMIN_COMMANDS.map(({ names, summary }) => {
    const [name = ''] = names;
    const aliases = names.slice(1);
    const description = aliases.length === 0 ? {} : { description: `Also as ${aliases.join(', ')}.` };
    const parameters = name === 'set_trace_mask' ? { parameters: [query('traceMask', 'a decimal number')] } : {};
    return [
      `${commandUrl}/${name}`,
      { get: { operationId: name, summary, ...description, ...parameters, responses: OF_COMMAND } },
    ];
  });
  return {
    openapi: '3.1.0',
    info: { title: 'Meerkat admin', version: MEERKAT_VERSION },
    paths: {
      ...Object.fromEntries(commands),
      [`${commandUrl}/snapshot`]: {
        get: {
          operationId: 'snapshot',
          summary: 'writes a snapshot and gives its bytes',
          description: 'The caller needs each permission of the root. Headers: last_zxid, snapshot_size.',
          security: [{ authorization: [] }],
          parameters: [query('streaming', 'false: the headers alone')],
          responses: {
            200: { description: 'the snapshot', content: { 'application/octet-stream': {} } },
            401: { description: 'no, or no valid, header Authorization' },
            403: { description: 'a permission of the root is missing' },
            429: { description: 'too early after the one before' },
            500: { description: 'it failed: the log of the server says why' },
            503: { description: 'admin.snapshot.enabled=false' },
          },
        },
      },
      [`${commandUrl}/restore`]: {
        post: {
          operationId: 'restore',
          summary: 'makes the snapshot in the body the whole data of this server',
          description:
            'The caller needs each permission of the root. A server of its own alone: its connections end, and what was there before is set aside.',
          security: [{ authorization: [] }],
          requestBody: { required: true, content: { 'application/octet-stream': {} } },
          responses: {
            200: { description: 'restored; last_zxid is that of the snapshot' },
            400: { description: 'there is no body' },
            401: { description: 'no, or no valid, header Authorization' },
            403: { description: 'a permission of the root is missing' },
            409: { description: 'a member of an ensemble' },
            429: { description: 'too early after the one before' },
            500: { description: 'it failed, and nothing has changed: the log of the server says why' },
            503: { description: 'admin.restore.enabled=false' },
          },
        },
      },
      [`${commandUrl}/archive`]: {
        get: {
          operationId: 'archive',
          summary: 'lists the logs and snapshots, or gives a part of one',
          description: 'The caller needs each permission of the root. Not a command of ZooKeeper: backups use it.',
          security: [{ authorization: [] }],
          parameters: [
            query('file', 'the name of a log or snapshot; without it they are listed'),
            query('from', 'the first byte'),
            query('length', 'how many bytes, 4194304 at most'),
          ],
          responses: {
            200: { description: 'the list, or the bytes without the zeros at their end (header trailing_zeros)' },
            401: { description: 'no, or no valid, header Authorization' },
            403: { description: 'a permission of the root is missing' },
            404: { description: 'the file was removed' },
            503: { description: 'admin.snapshot.enabled=false' },
          },
        },
      },
      [`${commandUrl}/end_session`]: {
        get: {
          operationId: 'look_at_session',
          summary: 'whether a session is there, and the ephemerals that would go with it',
          description: 'The caller needs each permission of the root. Not a command of ZooKeeper.',
          ...OF_SESSION,
        },
        post: {
          operationId: 'end_session',
          summary: 'ends a session, even if its client is alive',
          description:
            'The caller needs each permission of the root. Any server does it for any session, but for local ones. Not a command of ZooKeeper.',
          ...OF_SESSION,
          responses: { ...OF_SESSION.responses, 504: { description: 'asked for, and what came of it is not known' } },
        },
      },
      [`${commandUrl}/drain`]: {
        get: {
          operationId: 'look_at_drain',
          summary: 'whether clients are sent away, and how many connections there are',
          ...ofDrain(),
        },
        post: {
          operationId: 'drain',
          summary: 'sends clients to other servers, with their sessions, and accepts no more sessions',
          ...ofDrain(query('per_second', 'how many in a second, from 1 to 100000; 500 without it')),
        },
      },
      [`${commandUrl}/undrain`]: {
        post: { operationId: 'undrain', summary: 'takes sessions again', ...ofDrain() },
      },
      [`${commandUrl}/shed`]: {
        post: {
          operationId: 'shed',
          summary: 'sends some clients to other servers, with their sessions',
          ...ofDrain({ ...query('count', 'how many'), required: true }),
        },
      },
      '/livez': { get: health('livez', 'whether the process is worth keeping') },
      '/readyz': { get: health('readyz', 'whether clients can be sent here: false without a quorum') },
      '/metrics': {
        get: {
          operationId: 'metrics',
          summary: 'metrics for Prometheus',
          parameters: [query('name[]', 'this family alone; may be repeated')],
          responses: { 200: { description: 'metrics', content: { 'text/plain': {} } } },
        },
      },
    },
    components: {
      securitySchemes: {
        authorization: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: '`digest user:password`, or `ip`',
        },
      },
    },
  };
}

const OF_COMMAND = {
  200: {
    description: 'what was asked for, with `command` and `error`, which is null unless something is wrong',
    content: { 'application/json': { schema: { type: 'object', required: ['command', 'error'] } } },
  },
};

const OF_SESSION = {
  security: [{ authorization: [] }],
  parameters: [{ ...query('session', 'its id: 0x and hexadecimal digits, or decimal'), required: true }],
  responses: {
    200: { description: 'session, ephemerals, ephemeral_paths (the first 20); is_ended says whether it has ended' },
    400: { description: 'that is no id' },
    401: { description: 'no, or no valid, header Authorization' },
    403: { description: 'a permission of the root is missing' },
    404: { description: 'this server knows no such session' },
    503: { description: 'without a quorum nothing was asked for' },
  },
};

function ofDrain(...parameters: readonly object[]): object {
  return {
    description: 'The caller needs each permission of the root. Not a command of ZooKeeper.',
    security: [{ authorization: [] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    responses: {
      200: { description: 'is_draining, connections that are open, closed by now' },
      ...(parameters.length === 0 ? {} : { 400: { description: 'that is no such number' } }),
      401: { description: 'no, or no valid, header Authorization' },
      403: { description: 'a permission of the root is missing' },
      405: { description: 'what changes something is asked for with POST' },
      503: { description: 'without a quorum it is not known who may: a super user may' },
    },
  };
}

function health(operationId: string, summary: string): object {
  return {
    operationId,
    summary,
    parameters: [query('verbose', 'each check')],
    responses: { 200: { description: 'yes' }, 503: { description: 'no: a line for each check says why' } },
  };
}

function query(name: string, description: string): object {
  return { name, in: 'query', required: false, description, schema: { type: 'string' } };
}
