import { connect } from '@meerkat/client';
import type { PastTrees } from '@meerkat/console';
import { Mutex } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChangingEnsemble } from '../ensemble/changing-ensemble.ts';
import { describeWith } from '../harness/peers.ts';
import { ConsoleSite, launchBrowser } from './console-site.ts';
import { Keyboard, perform, withoutMouse } from './keyboard.ts';
import { navigatorTasks } from './navigator-tasks.ts';
import { recordPicture } from './pictures.ts';

const FROM_MS = Date.parse('2026-01-01');
const DAY_MS = 86_400_000;

describeWith(['chromium'], 'the console works with the keyboard alone', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test('thirty tasks known from ZooNavigator', async () => {
    await using server = await TestServer.start();
    await using site = await ConsoleSite.open(browser, server.connectString);
    const { client, page } = site;
    await client.createParents('/app/config/database', '{"port":1}');
    await client.createParents('/app/old/deep', 'x');
    await client.create('/app/leaf', 'bye');
    const other = await connect(server.connectString);
    const held = await new Mutex(other, '/locks/job').acquire();
    await using _ = await withoutMouse(page);
    const keys = new Keyboard(page);
    const tasks = navigatorTasks(site, keys, other);
    expect(tasks.length).toBeGreaterThanOrEqual(30);
    await perform(page, tasks);
    await held.release();
    await other.close();
    site.expectNoComplaints();
  });

  test('a membership plan and its application, and the past tree', async () => {
    await using before = await TestServer.start();
    const older = await connect(before.connectString);
    await older.createParents('/app/config', 'old');
    const ensemble = await ChangingEnsemble.start(['meerkat', 'meerkat', 'meerkat']);
    try {
      const past: PastTrees = {
        span: () => Promise.resolve({ fromMs: FROM_MS, toMs: FROM_MS + DAY_MS }),
        async open(moment) {
          const isFirst = moment === `${FROM_MS}` || moment === '0x10';
          const client = await connect(isFirst ? before.connectString : ensemble.connectString());
          return { zxid: isFirst ? '0x10' : '0x20', atMs: null, client, close: () => client.close() };
        },
      };
      await using site = await ConsoleSite.open(browser, ensemble.connectString(), {
        cluster: { past },
        width: 1000,
        height: 560,
      });
      const { client, page } = site;
      await client.createParents('/app/config', 'new');
      await using _ = await withoutMouse(page);
      const keys = new Keyboard(page);
      const plan = page.getByRole('region', { name: 'Plan' });
      const leader = await ensemble.leader();
      const [edited, removed] = [1, 2, 3].filter((id) => id !== leader.id);
      await perform(page, [
        [
          'log in as somebody',
          async () => {
            await page.goto(site.console.url);
            await page.getByRole('button', { name: 'Log in' }).waitFor();
            await keys.tabTo(/^How/);
            await keys.press('d');
            await keys.tabTo('User');
            await keys.type('super');
            await keys.tabTo('Password');
            await keys.type('test');
            await keys.press('Enter');
            await page.getByRole('treeitem', { name: 'app' }).waitFor();
          },
        ],
        [
          'plan another role for a member',
          async () => {
            await keys.press('g', 'e');
            await page.getByRole('button', { name: `Edit server ${edited}` }).waitFor();
            await keys.tabTo(`Edit server ${edited}`);
            await keys.press('Enter');
            await page.getByRole('dialog').waitFor();
            await keys.tabTo(/^Role/);
            await keys.press('o');
            await keys.tabTo('Plan it');
            await keys.press('Enter');
            await plan.getByText(`make server ${edited} an observer`).waitFor();
          },
        ],
        [
          'drop that plan',
          async () => {
            await keys.tabTo('Drop the plan');
            await keys.press('Enter');
            await plan.waitFor({ state: 'detached' });
          },
        ],
        [
          'plan that a member leaves',
          async () => {
            await keys.tabTo(`Remove server ${removed}`);
            await keys.press('Enter');
            await plan.getByText(`remove server ${removed}`).waitFor();
            await page.getByRole('button', { name: 'Apply…' }).scrollIntoViewIfNeeded();
            await recordPicture(page, 'members');
          },
        ],
        [
          'apply the plan, and confirm it',
          async () => {
            await keys.tabTo('Apply…');
            await keys.press('Enter');
            await page.getByRole('dialog').waitFor();
            await keys.tabTo('Change');
            await keys.press('Enter');
            await site.see('All steps are made.');
            await keys.press('Escape');
            await page.getByRole('button', { name: `Remove server ${removed}` }).waitFor({ state: 'detached' });
            const listed = new TextDecoder().decode((await client.config()).data);
            expect(listed).not.toContain(`server.${removed}=`);
          },
        ],
        [
          'go to an earlier moment with the slider',
          async () => {
            await keys.press('g', 'h');
            await site.see('as of 0x20');
            await keys.tabTo('Moment');
            await keys.press('Home');
            await site.see('as of 0x10');
          },
        ],
        [
          'read a value as it was',
          async () => {
            await keys.tabTo('app');
            await keys.press('Enter');
            await page.getByRole('button', { name: 'config', exact: true }).waitFor();
            await keys.tabTo('config');
            await keys.press('Enter');
            await expect.poll(() => site.value()).toBe('old');
          },
        ],
        [
          'see what has become of it',
          async () => {
            await keys.tabTo('Compare with', 'Shift+Tab');
            await keys.type('now');
            await keys.press('Enter');
            await page.getByRole('region', { name: 'Differences' }).waitFor();
            await keys.tabTo('/app/config');
            await keys.press('Enter');
            await page.locator('.cm-deletedChunk').filter({ hasText: 'old' }).waitFor();
            await recordPicture(page, 'time');
          },
        ],
        [
          'end the comparison',
          async () => {
            await keys.tabTo('End comparison', 'Shift+Tab');
            await keys.press('Enter');
            await page.getByRole('region', { name: 'Differences' }).waitFor({ state: 'detached' });
            await expect.poll(() => site.value()).toBe('old');
          },
        ],
      ]);
      site.expectNoComplaints();
    } finally {
      await older.close();
      await ensemble.dispose();
    }
  });
});
