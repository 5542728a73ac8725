import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { ChangingEnsemble, type ChangingServer } from '../ensemble/changing-ensemble.ts';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS } from '../harness/server-process.ts';
import { ConsoleSite, launchBrowser } from './console-site.ts';

describeWith(['chromium', 'apache'], 'the console changes the members', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test.each(SERVER_KINDS)(
    'of an ensemble of %s, with a plan that is shown first, and reports why it is refused',
    async (kind) => {
      const ensemble = await ChangingEnsemble.start([kind, kind, kind]);
      onTestFailed(() => console.log(ensemble.logs.slice(-20_000)));
      try {
        await using site = await ConsoleSite.open(browser, ensemble.connectString());
        const { page } = site;
        await site.enter('/', 'servers');
        await expect.poll(() => idsOf(page)).toEqual(['1', '2', '3']);
        const rows = membersTable(page).getByRole('row');
        await expect.poll(() => rows.filter({ hasText: 'participant' }).count()).toBe(3);
        await membersTable(page).getByText('leader', { exact: true }).waitFor();
        await membersTable(page).getByText(ensemble.server(2).address, { exact: true }).waitFor();

        // Without permission the service refuses.
        await page.getByRole('button', { name: 'Remove server 3' }).click();
        await planRow(page, 'remove server 3').getByText('yes', { exact: true }).waitFor();
        expect(await planRow(page, 'remove server 3').getByText('stop server 3 afterwards').count()).toBe(1);
        await apply(page);
        await page.getByRole('alert').getByText('No permission to change members').waitFor();
        await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();

        await page.getByRole('button', { name: 'Log out' }).click();
        await page.getByLabel('How').selectOption('digest');
        await page.getByRole('textbox', { name: 'User' }).fill('super');
        await page.getByRole('textbox', { name: 'Password' }).fill('test');
        await page.getByRole('button', { name: 'Log in' }).click();

        // A joining server must be running first; until then the step waits.
        const joiner = await ensemble.add(4, kind);
        await page.getByRole('button', { name: 'Add a server' }).click();
        await fillMember(page, joiner, 'observer');
        const joins = planRow(page, 'add server 4 as an observer');
        await joins.getByText('start server 4 with the list of the members and itself').waitFor();
        await apply(page);
        await page.getByRole('dialog').getByText('waiting: start server 4').waitFor();
        await ensemble.join(4, kind, [1, 2, 3]);
        await closeWhenDone(page);
        await expect.poll(() => idsOf(page)).toEqual(['1', '2', '3', '4']);
        await expect.poll(() => rows.filter({ hasText: 'observer' }).count()).toBe(1);

        // A change of role and a removal, in one plan.
        const leader = await ensemble.leader();
        const leaving = [1, 2, 3].find((id) => id !== leader.id)!;
        await page.getByRole('button', { name: 'Edit server 4' }).click();
        await page.getByRole('dialog').getByLabel('Role').selectOption('participant');
        await page.getByRole('button', { name: 'Plan it' }).click();
        await page.getByRole('button', { name: `Remove server ${leaving}` }).click();
        await planRow(page, 'make server 4 a participant').getByText('1, 2, 3, 4').waitFor();
        await planRow(page, `remove server ${leaving}`).waitFor();
        await apply(page);
        await closeWhenDone(page);
        const left = ['1', '2', '3', '4'].filter((id) => id !== String(leaving));
        await expect.poll(() => idsOf(page)).toEqual(left);
        await rows.filter({ hasText: 'participant' }).nth(2).waitFor();
        const listed = new TextDecoder().decode((await site.client.config()).data);
        expect([...listed.matchAll(/^server\.(\d)=/gm)].map(([, id]) => id)).toEqual(left);

        // Another client changes the list between the plan and the change.
        await page.getByRole('button', { name: 'Remove server 4' }).click();
        await planRow(page, 'remove server 4').waitFor();
        await page.getByRole('button', { name: 'Apply…' }).click();
        const other = await ensemble.connect(left.map(Number).filter((id) => id !== 4));
        await other.reconfig({ joining: [`server.4=${joiner.line('observer')}`] });
        await other.close();
        await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
        await page.getByRole('alert').getByText('Changed by another client').waitFor();
        await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();

        // Servers without reconfigEnabled keep their members.
        await ensemble.server(leaving).kill();
        const staying = left.map((id) => ensemble.server(Number(id)));
        await Promise.all(staying.map((server) => restartFixed(server)));
        for (const server of staying) await server.waitFor(/./);
        await page.locator('.state.good').waitFor();
        await apply(page);
        await page.getByRole('alert').getByText('The servers keep their members').waitFor();
        await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();

        // Rare errors, from a stubbed service.
        for (const [code, title] of [
          ['RECONFIGINPROGRESS', 'Another change is in progress'],
          ['NEWCONFIGNOQUORUM', 'Too few servers are ready'],
        ] as const) {
          const failure = { code, message: 'made up', path: null };
          await page.route('**/members/step', (route) => route.fulfill({ status: 409, json: failure }), { times: 1 });
          await apply(page);
          await page.getByRole('alert').getByText(title).waitFor();
          await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
        }
        site.expectNoComplaints();
      } finally {
        await ensemble.dispose();
      }
    },
  );

  test.each(SERVER_KINDS)('not of an ensemble of %s with groups and weights, which it shows', async (kind) => {
    const groups = ['group.1=1:2', 'group.2=3', 'weight.1=2', 'weight.2=1', 'weight.3=1'];
    const ensemble = await ChangingEnsemble.start([kind, kind, kind], [], groups);
    onTestFailed(() => console.log(ensemble.logs.slice(-20_000)));
    try {
      await using site = await ConsoleSite.open(browser, ensemble.connectString());
      const { page } = site;
      await site.enter('/', 'servers');
      await expect.poll(() => idsOf(page)).toEqual(['1', '2', '3']);
      const columns = await membersTable(page).getByRole('columnheader').allTextContents();
      const [group, weight] = [columns.indexOf('Group'), columns.indexOf('Weight')];
      const shown = async (id: string): Promise<readonly (string | undefined)[]> => {
        const row = membersTable(page)
          .getByRole('row')
          .filter({ has: page.getByRole('rowheader', { name: id, exact: true }) });
        const cells = await row.locator('th, td').allTextContents();
        return [cells[group], cells[weight]];
      };
      expect([await shown('1'), await shown('2'), await shown('3')]).toEqual([
        ['1', '2'],
        ['1', '1'],
        ['2', '1'],
      ]);
      await page.getByText('Groups or weights decide').waitFor();
      expect(await page.getByRole('button', { name: 'Remove server 3' }).count()).toBe(0);
      site.expectNoComplaints();
    } finally {
      await ensemble.dispose();
    }
  });

  test('not in read-only mode: it only plans, and does not query servers that are not members', async () => {
    const ensemble = await ChangingEnsemble.start(['meerkat', 'meerkat', 'meerkat']);
    try {
      await using site = await ConsoleSite.open(browser, ensemble.connectString(), { isWritable: false });
      const { page } = site;
      await site.enter('/', 'servers');
      await expect.poll(() => idsOf(page)).toEqual(['1', '2', '3']);
      await page.getByRole('button', { name: 'Remove server 3' }).click();
      await planRow(page, 'remove server 3').getByText('yes', { exact: true }).waitFor();
      await page.getByText('it plans and does not apply').waitFor();
      expect(await page.getByRole('button', { name: 'Apply…' }).count()).toBe(0);
      // It already follows, which is not shown in read-only mode.
      const joiner = await ensemble.join(4, 'meerkat', [1, 2, 3]);
      await page.getByRole('button', { name: 'Add a server' }).click();
      await fillMember(page, joiner, 'participant');
      await planRow(page, 'add server 4 as a participant').getByText('it does not answer').waitFor();
      // A lost quorum is reported.
      await ensemble.server(2).kill();
      await page.getByRole('button', { name: 'Drop the plan' }).click();
      await page.getByRole('button', { name: 'Remove server 1' }).click();
      await planRow(page, 'remove server 1').getByText('no', { exact: true }).waitFor();
      site.expectNoComplaints();
    } finally {
      await ensemble.dispose();
    }
  });
});

function membersTable(page: Page) {
  return page.getByRole('region', { name: 'Members' }).getByRole('table');
}

async function idsOf(page: Page): Promise<readonly string[]> {
  return (await membersTable(page).getByRole('rowheader').allTextContents()).sort();
}

function planRow(page: Page, step: string) {
  return page.getByRole('region', { name: 'Plan' }).getByRole('row').filter({ hasText: step });
}

async function apply(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Apply…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
}

async function closeWhenDone(page: Page): Promise<void> {
  await page.getByRole('dialog').getByText('All steps are made.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
}

async function fillMember(page: Page, { id, ports }: ChangingServer, role: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Id, as').fill(`${id}`);
  await dialog.getByLabel('Address, quorum port').fill(`127.0.0.1:${ports.quorum}:${ports.election}`);
  await dialog.getByLabel('Role').selectOption(role);
  await dialog.getByLabel('Port for clients').fill(`127.0.0.1:${ports.client}`);
  await dialog.getByRole('button', { name: 'Plan it' }).click();
}

async function restartFixed(server: ChangingServer): Promise<void> {
  await server.kill('SIGTERM');
  const text = server.staticText.replace('reconfigEnabled=true', 'reconfigEnabled=false');
  writeFileSync(join(server.directory, 'zoo.cfg'), text);
  server.launch();
}
