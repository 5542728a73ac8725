import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { Op, RawClient, type Reply } from '../harness/raw-client.ts';
import { OPEN_ACL, record } from '../harness/record-builder.ts';
import { RecordReader } from '../harness/record-reader.ts';
import { Ensemble } from './ensemble.ts';

const MARSHALLING_ERROR = -5;
const BAD_ARGUMENTS = -8;

describeWith(['apache'], 'under a leader of ours, with a follower of Apache', () => {
  let ensemble: Ensemble;

  beforeAll(async () => {
    ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'apache' }]);
    await ensemble.leaderOfKind('meerkat');
  });
  afterAll(() => ensemble?.dispose());
  beforeEach(() => {
    onTestFailed(() => console.log(ensemble.logs));
  });

  const clientsOfAll = (): Promise<RawClient[]> =>
    Promise.all(ensemble.members.map(({ server }) => RawClient.connect(server.port)));
  const create = (client: RawClient, path: string): Promise<Reply> =>
    client.request(Op.create, record().ustring(path).buffer('').acls(OPEN_ACL).int(0).build());
  const setData = (client: RawClient, path: string, data: string | null): Promise<Reply> =>
    client.request(Op.setData, record().ustring(path).buffer(data).int(-1).build());

  // After an undecodable reconfig Apache's leader no longer answers its clients, nor those of the forwarding follower.
  test('an undecodable write is answered at every server, and does not delay other requests', async () => {
    const clients = await clientsOfAll();
    for (const [i, client] of clients.entries()) {
      for (const op of [Op.reconfig, Op.create, Op.setData, Op.setACL, Op.delete, Op.multi]) {
        expect(await client.request(op), `op ${op} at server ${i + 1}`).toMatchObject({ error: MARSHALLING_ERROR });
      }
      for (const [j, other] of clients.entries()) {
        expect(await create(other, `/after-${i}-${j}`)).toMatchObject({ error: 0 });
      }
      const late = await RawClient.connect(ensemble.members[i]!.server.port);
      expect(await create(late, `/late-${i}`)).toMatchObject({ error: 0 });
      await late.close();
    }
    await Promise.all(clients.map((client) => client.close()));
  });

  // Apache's leader accepts these, and every Apache server that applies them, or the next write below the quota, exits.
  test('a quota that would terminate Apache servers is refused at every server', async () => {
    const clients = await clientsOfAll();
    const [first] = clients;
    const quota = '/zookeeper/quota/q';
    for (const path of ['/q', quota, `${quota}/zookeeper_limits`, `${quota}/zookeeper_stats`]) {
      expect(await create(first!, path)).toMatchObject({ error: 0 });
    }
    for (const [i, client] of clients.entries()) {
      expect(await create(client, '/zookeeper/quota/zookeeper_limits')).toMatchObject({ error: BAD_ARGUMENTS });
      for (const text of [null, 'garbage', 'count=x,bytes=1']) {
        const poisoned = await setData(client, `${quota}/zookeeper_stats`, text);
        expect(poisoned, String(text)).toMatchObject({ error: BAD_ARGUMENTS });
      }
      expect(await setData(client, '/q', String(i))).toMatchObject({ error: 0 });
    }
    for (const client of clients) {
      await client.demand(Op.sync, record().ustring('/').build());
      const { body } = await client.demand(
        Op.getData,
        record().ustring(`${quota}/zookeeper_stats`).bool(false).build(),
      );
      expect(new RecordReader(body).buffer()?.toString()).toBe('count=1,bytes=1');
    }
    await Promise.all(clients.map((client) => client.close()));
  });
});
