import type { Browser, Page } from 'playwright-core';

/** Timeout of waits, for a busy machine. */
export const PATIENCE_MS = 120_000;

export interface Look {
  readonly colorScheme?: 'light' | 'dark' | undefined;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}

/** The unused page of each browser. */
const idle: WeakMap<Browser, Page> = new WeakMap();

/**
 * A browser page that is reused by consecutive tests: a new page in a new context takes two and a half times the CPU
 * time of loading the console into an existing one.
 *
 * Each test gets it without cookies, storage, routes and listeners.
 */
export class PooledPage implements AsyncDisposable {
  readonly page: Page;
  readonly #browser: Browser;

  static async acquire(browser: Browser, { colorScheme = 'light', width = 1280, height = 800 }: Look = {}) {
    const page = idle.get(browser) ?? (await newPage(browser));
    idle.delete(browser);
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    return new PooledPage(browser, page);
  }

  private constructor(browser: Browser, page: Page) {
    this.#browser = browser;
    this.page = page;
  }

  /** Call before the shown console is closed: any response from its origin, even an error, keeps the page's process. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { page } = this;
    for (const event of ['pageerror', 'console', 'request']) page.removeAllListeners(event);
    try {
      await page.unrouteAll();
      await page.goto(new URL('/nothing-is-here', page.url()).href);
      await page.evaluate('localStorage.clear(); sessionStorage.clear()');
      await page.context().clearCookies();
      await page.mouse.move(0, 0);
      idle.set(this.#browser, page);
    } catch {
      await page.context().close();
    }
  }
}

async function newPage(browser: Browser): Promise<Page> {
  const context = await browser.newContext();
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  return page;
}
