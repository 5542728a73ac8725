import { ConnectionLossError, NoAuthError, NoNodeError, Perm, TimeoutError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { runSolo } from '../testing/fleet.ts';
import { type Message, Messenger } from './messenger.ts';

const textOf = ({ data }: Message): string => new TextDecoder().decode(data);

describe('messages between members', () => {
  test('arrive in the order in which they were sent, with their senders', () =>
    runSolo(1, async (fleet) => {
      const [annClient, bobClient] = [await fleet.connectAs('ann'), await fleet.connectAs('bob')];
      const ann = new Messenger(annClient, '/mail', 'ann/1');
      const bob = new Messenger(bobClient, '/mail', 'bob');
      await expect(ann.send('bob', 'too early')).rejects.toThrow(NoNodeError);
      expect(await ann.backlog('bob')).toBeNull();
      await bob.open();
      const ids = await Promise.all(['1', '2', '3'].map((text) => ann.send('bob', text)));
      expect(await bob.backlog()).toBe(3);
      const received: [string, string, string][] = [];
      for await (const message of bob.receive()) {
        received.push([message.id, message.sender, textOf(message)]);
        await message.acknowledge();
        await message.acknowledge();
        if (received.length === 3) await ann.send('bob', '4');
        if (received.length === 4) break;
      }
      expect(received.map(([, sender, text]) => `${sender} ${text}`)).toEqual([
        'ann/1 1',
        'ann/1 2',
        'ann/1 3',
        'ann/1 4',
      ]);
      expect(received.slice(0, 3).map(([id]) => id)).toEqual(ids);
      expect(await bob.backlog()).toBe(0);
      await Promise.all([annClient, bobClient].map((client) => client.close()));
    }));

  test('name their sender, also when it does not escape its name', () =>
    runSolo(8, async (fleet) => {
      const client = await fleet.connectAs('bob');
      const bob = new Messenger(client, '/mail', 'bob');
      await bob.open();
      await client.createProtected('/mail/bob/100%-', 'x', { sequential: true });
      await bob.send('bob', 'y');
      const received: string[] = [];
      for await (const message of bob.receive()) {
        received.push(`${message.sender} ${textOf(message)}`);
        await message.acknowledge();
        if (received.length === 2) break;
      }
      expect(received).toEqual(['100% x', 'bob y']);
      await client.close();
    }));

  test("are not awaited beyond the receiver's limit, also when a copy has to be deleted", () =>
    runSolo(10, async (fleet) => {
      const client = await fleet.connectAs('bob');
      const bob = new Messenger(client, '/mail', 'bob');
      await bob.open();
      const mark = `_c_${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}-ann-`;
      for (const text of ['x', 'x']) await client.create(`/mail/bob/${mark}`, text, { sequential: true });
      const controller = new AbortController();
      const receiving = bob.receive({ signal: controller.signal });
      expect((await receiving.next()).value).toMatchObject({ sender: 'ann' });
      const { network } = fleet.world;
      network.block('bob', 'zk1');
      network.block('zk1', 'bob');
      let isOver = false;
      const next = receiving.next().then(({ done }) => {
        isOver = done === true;
      });
      await fleet.world.until(() => client.state !== 'connected', 60_000);
      controller.abort();
      await fleet.world.until(() => isOver, 1000);
      expect(isOver).toBe(true);
      network.heal();
      await next;
      expect(await bob.backlog()).toBeGreaterThan(0);
      await client.close();
    }));

  test('reject with an error when the mailbox may no longer be listed, also in the middle of many', () =>
    runSolo(9, async (fleet) => {
      const [client, admin] = [await fleet.connectAs('bob'), await fleet.connectAs('admin')];
      const bob = new Messenger(client, '/mail', 'bob');
      await bob.open();
      for (const text of ['1', '2']) await bob.send('bob', text);
      const received: string[] = [];
      const receiving = (async () => {
        for await (const message of bob.receive()) {
          received.push(textOf(message));
          await admin.addAuth('digest', 'admin:x');
          await admin.setAcl('/mail/bob', [{ scheme: 'auth', id: '', perms: Perm.all }]);
          for (const end of fleet.world.network.openEnds) end.breakStream();
          await fleet.world.sleep(2000);
        }
      })();
      await expect(receiving).rejects.toThrow(NoAuthError);
      expect(received).toEqual(['1']);
      await Promise.all([client.close(), admin.close()]);
    }));

  test('are delivered again under the same id when they were not acknowledged', () =>
    runSolo(2, async (fleet) => {
      const client = await fleet.connectAs('ann');
      const ann = new Messenger(client, '/mail', 'ann');
      await ann.open();
      await ann.send('ann', 'a');
      await ann.send('ann', 'b');
      const ids: string[] = [];
      for await (const message of ann.receive()) {
        ids.push(message.id);
        if (ids.length === 2) break;
      }
      const again: string[] = [];
      for await (const message of ann.receive()) {
        again.push(message.id);
        await message.acknowledge();
        if (again.length === 2) break;
      }
      expect(again).toEqual(ids);
      await client.close();
    }));

  test('are delivered once per loop when the sender repeated them, and the copy is deleted', () =>
    runSolo(3, async (fleet) => {
      const client = await fleet.connectAs('ann');
      const ann = new Messenger(client, '/mail', 'ann');
      await ann.open();
      const id = await ann.send('ann', 'once');
      const seen: string[] = [];
      for await (const message of ann.receive()) {
        seen.push(textOf(message));
        if (seen.length === 2) break;
        await message.acknowledge();
        await client.create(`/mail/ann/_c_${id}-ann-`, 'once', { sequential: true });
        await ann.send('ann', 'next');
      }
      expect(seen).toEqual(['once', 'next']);
      expect(await ann.backlog()).toBe(1);
      await client.close();
    }));

  test('report whether they may have been sent when the sender cancels', () =>
    runSolo(4, async (fleet) => {
      const client = await fleet.connectAs('ann');
      const ann = new Messenger(client, '/mail', 'ann');
      await ann.open();
      fleet.world.network.block('ann', 'zk1');
      fleet.world.network.block('zk1', 'ann');
      const error: unknown = await ann.send('ann', 'x', { timeoutMs: 500 }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(TimeoutError);
      await fleet.world.until(() => client.state === 'suspended', 10_000);
      const waiting: unknown = await ann.send('ann', 'x', { timeoutMs: 50 }).catch((reason: unknown) => reason);
      expect(waiting).toMatchObject({ outcome: 'not-applied' });
      fleet.world.network.heal();
      await client.whenConnected();
      expect(await ann.send('ann', 'y')).toMatch(/^[0-9a-f-]{36}$/);
      await client.close();
    }));

  test('report an unknown outcome when the mailbox is gone after an attempt without a reply', () =>
    runSolo(11, async (fleet) => {
      const [client, admin] = [await fleet.connectAs('ann'), await fleet.connectAs('admin')];
      const ann = new Messenger(client, '/mail', 'ann');
      await ann.open();
      const create = client.create.bind(client);
      client.create = (async (...call: Parameters<typeof create>) => {
        client.create = create;
        await create(...call);
        await admin.deleteRecursive('/mail/ann');
        throw new ConnectionLossError({ operation: 'create', path: call[0], outcome: 'unknown' });
      }) as typeof create;
      await expect(ann.send('ann', 'x')).rejects.toMatchObject({ code: 'NONODE', outcome: 'unknown' });
      await expect(ann.send('ann', 'x')).rejects.toMatchObject({ code: 'NONODE', outcome: 'not-applied' });
      await Promise.all([client.close(), admin.close()]);
    }));

  test('are refused when servers close connections because of their size, and do not block later ones', () =>
    runSolo(12, async (fleet) => {
      const client = await fleet.connectAs('ann', { requestBytesMax: 8 * 1024 * 1024 });
      const ann = new Messenger(client, '/mail', 'ann');
      await ann.open();
      const sends = ['1', 'x'.repeat(1_500_000), '2'].map((text) => ann.send('ann', text));
      await expect(sends[1]).rejects.toMatchObject({ code: 'REQUESTTOOLARGE', outcome: 'unknown' });
      await Promise.all([sends[0], sends[2]]);
      expect(await ann.backlog()).toBe(2);
      await client.close();
    }));

  test('reject in time and in order when cancelled, also while queued behind others', () =>
    runSolo(9, async (fleet) => {
      const client = await fleet.connectAs('ann');
      const ann = new Messenger(client, '/mail', 'ann');
      await ann.open();
      const { network } = fleet.world;
      network.block('ann', 'zk1');
      network.block('zk1', 'ann');
      const first = ann.send('ann', 'first');
      const begunMs = fleet.world.nowMs;
      const error = await ann.send('ann', 'second', { timeoutMs: 100 }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(TimeoutError);
      expect(error).toMatchObject({ outcome: 'not-applied' });
      expect(fleet.world.nowMs - begunMs).toBeLessThan(101);
      const third = ann.send('ann', 'third');
      network.heal();
      await Promise.all([first, third]);
      const received: string[] = [];
      for await (const message of ann.receive()) {
        received.push(new TextDecoder().decode(message.data));
        if (received.length === 2) break;
      }
      expect(received).toEqual(['first', 'third']);

      // When its reply is lost, it cannot be known whether the message is gone.
      for await (const message of ann.receive()) {
        network.block('zk1', 'ann');
        const doubtful = await message.acknowledge({ timeoutMs: 100 }).catch((reason: unknown) => reason);
        expect(doubtful).toBeInstanceOf(TimeoutError);
        expect(doubtful).toMatchObject({ outcome: 'unknown' });
        network.heal();
        break;
      }
      await client.close();
    }));
});
