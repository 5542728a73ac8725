import { connect } from '@meerkat/client';
import type { PastTrees } from '@meerkat/console';
import { Mutex } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChangingEnsemble } from '../ensemble/changing-ensemble.ts';
import { describeWith } from '../harness/peers.ts';
import { ConsoleSite, launchBrowser, PATIENCE_MS } from './console-site.ts';
import { recordPicture } from './pictures.ts';

/** What has the focus, as assistive techniques name it. */
const FOCUSED = `(() => {
  const element = document.activeElement;
  const label = element?.closest('label');
  return element?.getAttribute('aria-label') || (label ?? element)?.textContent?.trim() || '';
})()`;

const FROM_MS = Date.parse('2026-01-01');
const DAY_MS = 86_400_000;

/** Before the page is loaded: a mouse that is used is a complaint of it. */
async function withoutMouse(page: Page): Promise<void> {
  await page.addInitScript("addEventListener('pointerdown', () => console.error('a mouse was used'), true)");
}

/** A hand on the keyboard of a page, and none on its mouse. */
class Keyboard {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.#page.keyboard.press(key);
  }

  async type(text: string): Promise<void> {
    await this.#page.keyboard.insertText(text);
  }

  /** Goes on with Tab until something of that name has the focus, which may be about to be shown. */
  async tabTo(name: string | RegExp, key = 'Tab'): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const passed: string[] = [];
      for (let i = 0; i < 80; i++) {
        const focused = (await this.#page.evaluate(FOCUSED)) as string;
        if (typeof name === 'string' ? focused === name : name.test(focused)) return;
        passed.push(focused.slice(0, 30));
        await this.press(key);
      }
      if (Date.now() > deadline) throw new Error(`Tab does not lead to ${name}, but to ${passed.join(' | ')}`);
    }
  }

  /** An entry of the menu of the znode. */
  async menu(entry: string): Promise<void> {
    await this.tabTo('More');
    await this.press('Enter');
    await this.#page.locator('[role^=menuitem]:focus').waitFor();
    for (let i = 0; i < 12; i++) {
      if (((await this.#page.evaluate(FOCUSED)) as string) === entry) break;
      await this.press('ArrowDown');
    }
    await this.press('Enter');
  }

  async find(path: string): Promise<void> {
    await this.press('/');
    await this.press('Control+a');
    await this.type(path);
    await this.#page.getByRole('option', { name: path, exact: true }).waitFor();
    await this.press('Enter');
    await this.at(path);
  }

  /** Waits until a znode is shown, and takes keys. */
  async at(path: string): Promise<void> {
    const region = this.#page.getByRole('region', { name: path, exact: true });
    await region.getByRole('button', { name: 'More' }).waitFor();
  }

  async tree(): Promise<void> {
    await this.tabTo('Znodes');
  }
}

describeWith(['chromium'], 'the console is worked with the keyboard alone', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test('thirty tasks that people have with ZooNavigator', async () => {
    await using server = await TestServer.start();
    await using site = await ConsoleSite.open(browser, server.connectString);
    const { client, page } = site;
    await client.createParents('/app/config/database', '{"port":1}');
    await client.createParents('/app/old/deep', 'x');
    await client.create('/app/leaf', 'bye');
    const other = await connect(server.connectString);
    const held = await new Mutex(other, '/locks/job').acquire();
    await withoutMouse(page);
    const keys = new Keyboard(page);
    const see = (text: string | RegExp) => page.getByText(text).first().waitFor();
    const tasks: Tasks = [
      [
        'log in',
        async () => {
          await page.goto(site.console.url);
          await page.getByRole('button', { name: 'Log in' }).waitFor();
          await keys.tabTo('Log in');
          await keys.press('Enter');
          await page.getByRole('treeitem', { name: 'app' }).waitFor();
        },
      ],
      [
        'open a znode of the tree',
        async () => {
          await keys.tree();
          await keys.press('Home', 'ArrowDown', 'ArrowRight');
          await page.getByRole('treeitem', { name: 'config' }).waitFor();
          await keys.press('ArrowDown', 'ArrowRight');
          await page.getByRole('treeitem', { name: 'database' }).waitFor();
          await keys.press('ArrowDown');
        },
      ],
      ['read its value', () => expect.poll(() => site.value()).toContain('"port": 1')],
      [
        'go to the parent and close it',
        async () => {
          await keys.press('ArrowLeft', 'ArrowLeft');
          await page.getByRole('treeitem', { name: 'database' }).waitFor({ state: 'detached' });
        },
      ],
      [
        'go to the last znode, and the first',
        async () => {
          await keys.press('End');
          await keys.at('/zookeeper');
          await keys.press('Home');
          await keys.at('/');
        },
      ],
      ['find a znode by a part of its path', () => keys.find('/app/config/database')],
      [
        'see its versions and times',
        async () => {
          await keys.tabTo('Value');
          await keys.press('ArrowRight');
          await see('Version of the data');
        },
      ],
      [
        'see who may do what',
        async () => {
          await keys.press('ArrowRight');
          await see('You may: everything.');
          await keys.press('ArrowRight');
        },
      ],
      [
        'copy its path',
        async () => {
          await keys.press('y');
          await see('Copied: /app/config/database');
        },
      ],
      [
        'edit the value, with the difference',
        async () => {
          await keys.press('e');
          await page.getByRole('textbox', { name: 'New value of' }).waitFor();
          await keys.press('Control+a');
          await keys.type('{"port":2}');
          await keys.press('Control+s');
          await page.locator('.cm-deletedChunk').waitFor();
        },
      ],
      [
        'save it',
        async () => {
          await keys.press('Control+s');
          await see('/app/config/database is saved.');
        },
      ],
      [
        'undo that',
        async () => {
          await page.getByRole('dialog').waitFor({ state: 'detached' });
          await keys.press('u');
          await see('Undone: give /app/config/database the data of version 0 again.');
          expect(new TextDecoder().decode((await client.get('/app/config/database')).data)).toBe('{"port":1}');
        },
      ],
      [
        'leave an edit without a change',
        async () => {
          await keys.press('e');
          await page.getByRole('textbox', { name: 'New value of' }).waitFor();
          await keys.press('Escape');
          await page.getByRole('dialog').waitFor({ state: 'detached' });
        },
      ],
      [
        'create a child',
        async () => {
          await keys.find('/app/config');
          await keys.press('c');
          await page.getByRole('dialog').waitFor();
          await keys.type('new');
          await keys.press('Enter');
          await keys.at('/app/config/new');
        },
      ],
      [
        'create a sequential child with a value',
        async () => {
          await keys.press('c');
          await page.getByRole('dialog').waitFor();
          await keys.type('n-');
          await keys.tabTo('Append a number');
          await keys.press('Space');
          await keys.tabTo('Value');
          await keys.type('v');
          await keys.tabTo('Create');
          await keys.press('Enter');
          await see('/app/config/new/n-0000000000 is created.');
        },
      ],
      [
        'delete a leaf',
        async () => {
          await keys.find('/app/leaf');
          await keys.press('Delete');
          await see('1 znode with 3 B would go.');
          await keys.tabTo('Delete');
          await keys.press('Enter');
          await see('/app/leaf is deleted.');
        },
      ],
      [
        'bring it back',
        async () => {
          await page.getByRole('dialog').waitFor({ state: 'detached' });
          await keys.press('u');
          await see('Undone: create /app/leaf');
          expect(await client.exists('/app/leaf')).not.toBeNull();
        },
      ],
      [
        'copy a subtree',
        async () => {
          await keys.find('/app/old');
          await keys.menu('Copy to…');
          await page.getByRole('dialog').waitFor();
          await keys.press('Enter');
          await keys.at('/app/old-copy');
        },
      ],
      [
        'move a subtree',
        async () => {
          await keys.menu('Move to…');
          await page.getByRole('dialog').waitFor();
          await keys.press('Control+a');
          await keys.type('/moved');
          await keys.press('Enter');
          await keys.at('/moved');
          expect(await client.exists('/moved/deep')).not.toBeNull();
        },
      ],
      [
        'delete a subtree, and confirm it',
        async () => {
          await keys.press('Delete');
          await page.getByLabel('Type moved to confirm').waitFor();
          await keys.tabTo('Type moved to confirm');
          await keys.type('moved');
          await keys.press('Enter');
          await see('/moved is deleted, with 1 below it.');
        },
      ],
      [
        'change an ACL',
        async () => {
          await keys.find('/app/leaf');
          await keys.menu('Change ACL');
          await page.getByRole('dialog').waitFor();
          await keys.press('Control+a');
          await keys.type('world:anyone:cdra');
          await keys.tabTo('Save');
          await keys.press('Enter');
          await see('/app/leaf is saved.');
          expect((await client.getAcl('/app/leaf')).acl[0]?.perms).toBe(29);
        },
      ],
      [
        'export a subtree',
        async () => {
          const download = page.waitForEvent('download');
          await keys.menu('Export tree');
          expect((await download).suggestedFilename()).toBe('app-leaf.ndjson');
        },
      ],
      [
        'watch what happens below a znode',
        async () => {
          await keys.find('/app');
          await keys.menu('Watch changes');
          await see('Watching /app.');
          await client.set('/app/config/database', 'first');
          await see('/app/config/database');
        },
      ],
      [
        'pause and continue',
        async () => {
          await keys.tabTo('Pause');
          await keys.press('Enter');
          await client.set('/app/config/database', 'second');
          await see('Paused: 1 changes wait');
          await keys.press('Enter');
          await see('second');
        },
      ],
      [
        'filter the changes',
        async () => {
          await keys.tabTo(/^Show only/, 'Shift+Tab');
          await keys.type('second');
          await expect.poll(() => page.locator('.log-row').count()).toBe(1);
          await keys.press('Tab');
        },
      ],
      [
        'see who is connected',
        async () => {
          await keys.press('g', 's');
          await see('this console');
        },
      ],
      [
        'see what a session holds',
        async () => {
          await keys.tabTo(`0x${other.session?.id.toString(16)}`);
          await keys.press('Enter');
          await see('Ephemeral znodes (1)');
          await keys.press('Escape');
        },
      ],
      [
        'see who holds a lock',
        async () => {
          await keys.press('g', 'k');
          await see('holds it');
        },
      ],
      [
        'see how the servers are',
        async () => {
          await keys.press('g', 'e');
          await page.getByRole('cell', { name: 'standalone' }).waitFor();
        },
      ],
      [
        'see where the bytes are',
        async () => {
          await keys.press('g', 'z');
          await page.getByLabel('Area by').waitFor();
        },
      ],
      [
        'choose dark colours',
        async () => {
          await keys.tabTo('Colours');
          await keys.press('Enter', 'End', 'Enter');
          await page.locator('html[data-theme=dark]').waitFor();
        },
      ],
      [
        'read which keys there are',
        async () => {
          await keys.press('?');
          await see('search all paths');
          await keys.press('Escape');
        },
      ],
      [
        'log out',
        async () => {
          await keys.tabTo('Log out');
          await keys.press('Enter');
          await page.getByRole('button', { name: 'Log in' }).waitFor();
        },
      ],
    ];
    expect(tasks.length).toBeGreaterThanOrEqual(30);
    await perform(page, tasks);
    await held.release();
    await other.close();
    site.expectNoComplaints();
  });

  test('a plan of members and its change, and the tree of the past', async () => {
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
      await withoutMouse(page);
      const keys = new Keyboard(page);
      const see = (text: string | RegExp) => page.getByText(text).first().waitFor();
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
            await see('All steps are made.');
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
            await see('as of 0x20');
            await keys.tabTo('Moment');
            await keys.press('Home');
            await see('as of 0x10');
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

type Tasks = readonly (readonly [name: string, work: () => Promise<unknown>])[];

async function perform(page: Page, tasks: Tasks): Promise<void> {
  for (const [task, work] of tasks) {
    try {
      await work();
    } catch (error) {
      const focused = await page.evaluate(FOCUSED);
      throw new Error(`with the keyboard alone one cannot ${task} (focus: ${focused}): ${error}`, { cause: error });
    }
  }
}
