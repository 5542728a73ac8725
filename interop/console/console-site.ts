import { type Client, connect } from '@meerkat/client';
import { type ClusterOptions, type ConsoleOptions, type RunningConsole, startConsole } from '@meerkat/console';
import { type Browser, type ConsoleMessage, chromium, type Page } from 'playwright-core';
import { type Look, PooledPage } from './pooled-page.ts';

/** Flags for a browser without network traffic of its own. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: FLAGS, timeout: 120_000 });
}

export interface SiteOptions extends Look, Partial<Omit<ConsoleOptions, 'clusters'>> {
  readonly name?: string;
  readonly cluster?: Partial<ClusterOptions>;
  /** Further services: connect strings by name. */
  readonly others?: Readonly<Record<string, string>>;
}

/** A console for a service, a browser page that shows it, and a separate client that makes changes. */
export class ConsoleSite implements AsyncDisposable {
  readonly console: RunningConsole;
  readonly client: Client;
  readonly page: Page;
  readonly #lent: PooledPage;
  /** Errors of the page, and requests to other origins. */
  readonly #complaints: string[] = [];

  /** @param servers `host:port,host:port` */
  static async open(browser: Browser, servers: string, options: SiteOptions = {}): Promise<ConsoleSite> {
    const { name = 'service', colorScheme, width, height, cluster, others = {}, ...rest } = options;
    const clusters = [
      { ...serviceOf(name, servers), ...cluster },
      ...Object.entries(others).map(([other, connectString]) => serviceOf(other, connectString)),
    ];
    const running = await startConsole(
      { version: '0.0.0', key: null, isWritable: true, ...rest, clusters },
      { host: '127.0.0.1', port: 0 },
    );
    const client = await connect(cluster?.connection ?? servers);
    return new ConsoleSite(running, client, await PooledPage.acquire(browser, { colorScheme, width, height }));
  }

  private constructor(running: RunningConsole, client: Client, lent: PooledPage) {
    const { page } = lent;
    this.console = running;
    this.client = client;
    this.page = page;
    this.#lent = lent;
    page.on('pageerror', (error) => this.#complaints.push(error.stack ?? error.message));
    page.on('console', (message) => {
      // The browser also logs HTTP error responses.
      if (message.type() !== 'error' || message.text().startsWith('Failed to load resource')) return;
      if (!isByEditing(message)) this.#complaints.push(message.text());
    });
    page.on('request', (request) => {
      const { protocol, port } = new URL(request.url());
      if (protocol === 'http:' && port !== `${running.port}`) this.#complaints.push(`asked ${request.url()}`);
    });
  }

  /** Opens the page and logs in without credentials. */
  async enter(path = '/', view = 'tree'): Promise<Page> {
    const { page } = this;
    await page.goto(`${this.console.url}#/service/${view}${path === '/' ? '' : path}`);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('navigation', { name: 'Menu' }).waitFor();
    return page;
  }

  async show(path: string, view = 'tree'): Promise<void> {
    const names = path.split('/').map(encodeURIComponent).join('/');
    await this.page.goto(`${this.console.url}#/service/${view}${names}`);
  }

  /** Waits until a text is visible. */
  see(text: string | RegExp): Promise<void> {
    return this.page.getByText(text).first().waitFor();
  }

  /** The shown value, as text. */
  async value(): Promise<string> {
    return (await this.page.locator('.cm-content .cm-line').allTextContents()).join('\n').trim();
  }

  /** @throws Error with all of them */
  expectNoComplaints(): void {
    if (this.#complaints.length > 0) throw new Error(`the page complains: ${this.#complaints.join('\n')}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lent[Symbol.asyncDispose]();
    await this.client.close().catch(() => {});
    await this.console.close();
  }
}

function serviceOf(name: string, servers: string): ClusterOptions {
  return {
    name,
    connection: { servers },
    servers: servers.split(',').map((text) => monitored(text)),
    hasOwnLogin: false,
  };
}

function monitored(name: string): ClusterOptions['servers'][number] {
  const [host = '', port] = name.split(':');
  return { host, port: Number(port), name, tls: null };
}

/**
 * When text with a background is replaced in an editor, Chromium tries to keep its colour with a style attribute, and
 * reports a CSP violation without a line number. Violations by the page or a script have a line number.
 */
function isByEditing(message: ConsoleMessage): boolean {
  const { url, lineNumber } = message.location();
  return message.text().startsWith('Applying inline style violates') && lineNumber === 0 && !url.endsWith('.js');
}
