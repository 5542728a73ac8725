import type { Client } from '@meerkat/client';
import { expect } from 'vitest';
import type { ConsoleSite } from './console-site.ts';
import type { Keyboard, Tasks } from './keyboard.ts';

/**
 * The tasks of ZooNavigator users, in sequence.
 *
 * @param other a client that holds the lock `/locks/job`
 */
export function navigatorTasks(site: ConsoleSite, keys: Keyboard, other: Client): Tasks {
  const { client, page } = site;
  return [
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
        await site.see('Version of the data');
      },
    ],
    [
      'see who may do what',
      async () => {
        await keys.press('ArrowRight');
        await site.see('You may: everything.');
        await keys.press('ArrowRight');
      },
    ],
    [
      'copy its path',
      async () => {
        await keys.press('y');
        await site.see('Copied: /app/config/database');
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
        await site.see('/app/config/database is saved.');
      },
    ],
    [
      'undo that',
      async () => {
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        await keys.press('u');
        await site.see('Undone: give /app/config/database the data of version 0 again.');
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
        await site.see('/app/config/new/n-0000000000 is created.');
      },
    ],
    [
      'delete a leaf',
      async () => {
        await keys.find('/app/leaf');
        await keys.press('Delete');
        await site.see('1 znode with 3 B would go.');
        await keys.tabTo('Delete');
        await keys.press('Enter');
        await site.see('/app/leaf is deleted.');
      },
    ],
    [
      'bring it back',
      async () => {
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        await keys.press('u');
        await site.see('Undone: create /app/leaf');
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
        await site.see('/moved is deleted, with 1 below it.');
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
        await site.see('/app/leaf is saved.');
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
        await site.see('Watching /app.');
        await client.set('/app/config/database', 'first');
        await site.see('/app/config/database');
      },
    ],
    [
      'pause and continue',
      async () => {
        await keys.tabTo('Pause');
        await keys.press('Enter');
        await client.set('/app/config/database', 'second');
        await site.see('Paused: 1 changes wait');
        await keys.press('Enter');
        await site.see('second');
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
        await site.see('this console');
      },
    ],
    [
      'see what a session holds',
      async () => {
        await keys.tabTo(`0x${other.session?.id.toString(16)}`);
        await keys.press('Enter');
        await site.see('Ephemeral znodes (1)');
        await keys.press('Escape');
      },
    ],
    [
      'see who holds a lock',
      async () => {
        await keys.press('g', 'k');
        await site.see('holds it');
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
        await site.see('search all paths');
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
}
