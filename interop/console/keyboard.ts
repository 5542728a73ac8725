import type { Page } from 'playwright-core';
import { PATIENCE_MS } from './pooled-page.ts';

/** The accessible name of the focused element. */
const FOCUSED = `(() => {
  const element = document.activeElement;
  const label = element?.closest('label');
  return element?.getAttribute('aria-label') || (label ?? element)?.textContent?.trim() || '';
})()`;

/** Call before the page is loaded: until disposed, any use of the mouse is an error. */
export function withoutMouse(page: Page): Promise<AsyncDisposable> {
  return page.addInitScript("addEventListener('pointerdown', () => console.error('a mouse was used'), true)");
}

/** Controls a page with the keyboard only. */
export class Keyboard {
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

  /** Presses Tab until an element of that name has the focus; waits for it to appear. */
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

  /** Selects an entry of the znode's menu. */
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

  /** Waits until a znode is shown and accepts keys. */
  async at(path: string): Promise<void> {
    const region = this.#page.getByRole('region', { name: path, exact: true });
    await region.getByRole('button', { name: 'More' }).waitFor();
  }

  async tree(): Promise<void> {
    await this.tabTo('Znodes');
  }
}

export type Tasks = readonly (readonly [name: string, work: () => Promise<unknown>])[];

export async function perform(page: Page, tasks: Tasks): Promise<void> {
  for (const [task, work] of tasks) {
    try {
      await work();
    } catch (error) {
      const focused = await page.evaluate(FOCUSED);
      throw new Error(`with the keyboard alone one cannot ${task} (focus: ${focused}): ${error}`, { cause: error });
    }
  }
}
