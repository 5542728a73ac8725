import type { FastifyInstance, FastifyRequest } from 'fastify';
import { sendJson } from './answers.ts';
import type { ClusterSession } from './cluster-session.ts';
import type { ConsoleDesk } from './console-desk.ts';
import { lookAtEnd, takeEnd } from './ended-sessions.ts';
import { Fields } from './fields.ts';
import { planMembers, readMembers, takeStep } from './members.ts';
import { readHistory } from './past.ts';
import type { PastShelf } from './past-shelf.ts';
import { readDifference, readPastZnode } from './past-tree.ts';
import { Refusal } from './refusal.ts';
import { sizesBelow } from './sizes.ts';
import { exportTree, importTree } from './transfer.ts';
import { readZnode } from './znode-reader.ts';
import {
  type Change,
  copyTree,
  createZnode,
  deleteZnode,
  measureExtent,
  moveTree,
  setAcl,
  setData,
} from './znode-writer.ts';

/** Routes that read and change the tree. */
export function addDataRoutes(app: FastifyInstance, desk: ConsoleDesk): void {
  const read = (url: string, answer: (session: ClusterSession, fields: Fields) => Promise<unknown>): void => {
    app.get(`/api/c/:cluster/${url}`, async (request, reply) => {
      return await sendJson(reply, await answer(desk.clusterSessionOf(request), new Fields(request.query)));
    });
  };
  read('znode', (session, fields) => readZnode(session, fields.path(), session.call));
  read('children', async (session, fields) => {
    const range = {
      from: fields.number('from', 0, 0),
      count: fields.number('count', 0, 200),
      isFresh: fields.text('fresh', '') !== '',
    };
    const find = fields.has('find') ? fields.text('find').split('/') : [];
    return await session.childLists.page(fields.path(), range, find, session.call);
  });
  read('search', async (session, fields) => session.index.search(fields.text('text'), SEARCH_MAX));
  read('sizes', async (session, fields) => {
    const sizes = sizesBelow(session.index.sizes, fields.path(), fields.choice('by', ['bytes', 'count'], 'bytes'));
    return { sizes, index: session.index.state };
  });
  read('extent', (session, fields) => measureExtent(session.client, fields.path(), session.call));
  read('history', (session, fields) => readHistory(session, fields.path()));
  read('members', (session) => readMembers(session));
  app.post('/api/c/:cluster/members/plan', async (request, reply) => {
    const session = desk.clusterSessionOf(request);
    return await sendJson(
      reply,
      await planMembers(session, new Fields(request.body), desk.options.isWritable === true),
    );
  });
  app.post('/api/c/:cluster/members/step', async (request, reply) => {
    return await sendJson(reply, await takeStep(desk.writableSessionOf(request), new Fields(request.body)));
  });
  // Looking sends the credentials to an admin port, too.
  app.get('/api/c/:cluster/session-end', async (request, reply) => {
    return await sendJson(reply, await lookAtEnd(desk.writableSessionOf(request), new Fields(request.query)));
  });
  app.post('/api/c/:cluster/session-end', async (request, reply) => {
    return await sendJson(reply, await takeEnd(desk.writableSessionOf(request), new Fields(request.body)));
  });
  const readPast = (
    url: string,
    answer: (session: ClusterSession, shelf: PastShelf, fields: Fields) => Promise<unknown>,
  ): void => {
    app.get(`/api/c/:cluster/past/${url}`, async (request, reply) => {
      const session = desk.clusterSessionOf(request);
      return await sendJson(reply, await answer(session, desk.shelfOf(request), new Fields(request.query)));
    });
  };
  readPast('span', (_session, shelf) => shelf.span());
  readPast('znode', (session, shelf, fields) => readPastZnode(session, shelf, fields.text('at'), fields.path()));
  readPast('difference', (session, shelf, fields) =>
    readDifference(session, shelf, { from: fields.text('from'), to: fields.text('to') }, fields.path()),
  );
  read('undo', async (session) => ({ undo: session.undo.text }));
  addChanges(app, desk);
  addTransfers(app, desk);
}

function addChanges(app: FastifyInstance, desk: ConsoleDesk): void {
  const change = (url: string, run: (request: FastifyRequest, session: ClusterSession) => Promise<Change>): void => {
    // Before a body of some megabytes is read: only from clients that may send it.
    const onRequest = async (request: FastifyRequest): Promise<void> => {
      desk.writableSessionOf(request);
    };
    app.post(`/api/c/:cluster/${url}`, { bodyLimit: VALUE_BODY_MAX, onRequest }, async (request, reply) => {
      const session = desk.writableSessionOf(request);
      const { changed, undo } = await run(request, session);
      session.undo.put(undo);
      return await sendJson(reply, changed);
    });
  };
  change('create', ({ body }, { client, call }) => createZnode(client, new Fields(body), call));
  change('set', ({ body }, { client, call }) => setData(client, new Fields(body), call));
  change('acl', ({ body }, { client, call }) => setAcl(client, new Fields(body), call));
  change('delete', ({ body }, { client, call }) => deleteZnode(client, new Fields(body), call));
  change('copy', ({ body }, { client, call }) => copyTree(client, new Fields(body), call));
  change('move', ({ body }, { client, call }) => moveTree(client, new Fields(body), call));
  change('import', ({ body }, { client, call }) => {
    const fields = new Fields(body);
    return importTree(client, fields.path(), fields.text('lines'), call);
  });
  app.post('/api/c/:cluster/undo', async (request, reply) => {
    const { undo } = desk.writableSessionOf(request);
    const last = undo.take();
    if (last === null) throw new Refusal(409, 'nothing-to-undo', 'there is nothing that can be undone');
    await last.run();
    return await sendJson(reply, { undone: last.text });
  });
}

function addTransfers(app: FastifyInstance, desk: ConsoleDesk): void {
  app.get('/api/c/:cluster/export', async (request, reply) => {
    const session = desk.clusterSessionOf(request);
    const path = new Fields(request.query).path();
    const lines = await exportTree(session.client, path, session.cluster.name, session.call);
    const name = `${path === '/' ? 'root' : path.slice(1)}`.replace(/[^\w.-]+/g, '-').slice(0, 80);
    return await reply
      .type('application/x-ndjson')
      .header('content-disposition', `attachment; filename="${name}.ndjson"`)
      .header('cache-control', 'no-store')
      .header('x-content-type-options', 'nosniff')
      .send(lines);
  });
}

const SEARCH_MAX = 200;
/** The largest value that servers are usually configured to accept, in base64, and an import. */
const VALUE_BODY_MAX = 32 << 20;
