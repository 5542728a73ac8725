// The figures of docs/console.md: the speed of the console's page in Chromium, and the memory of the console.
//
//     npm run build && node bench/console.mjs [--children 1000000] [--seconds 20]
//
// Server, console and browser are separate processes; the console is used over its port, as by users.
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { connect } from '@meerkat/client';
import { chromium } from 'playwright-core';
import { killAll, start } from './processes.mjs';

const COMMAND = fileURLToPath(new URL('../packages/cli/bin/meerkat.js', import.meta.url));
const ASSETS = fileURLToPath(new URL('../packages/console/dist/web/assets/', import.meta.url));
const CHROMIUM = '/usr/bin/chromium-headless-shell';
const PATIENCE_MS = 600_000;
const TICK_MS = 100;

const { values } = parseArgs({
  options: { children: { type: 'string', default: '1000000' }, seconds: { type: 'string', default: '20' } },
});
const children = Number(values.children);
const seconds = Number(values.seconds);
const directory = mkdtempSync(join(tmpdir(), 'meerkat-console-'));
const rows = [];
const row = (what, figure) => {
  rows.push(`| ${what} | ${figure} |`);
  console.error(`${what}: ${figure}`);
};

try {
  const port = await freePort();
  writeFileSync(
    join(directory, 'zoo.cfg'),
    `dataDir=${directory}/data\nclientPort=${port}\nclientPortAddress=127.0.0.1\n`,
  );
  start(execPath, [COMMAND, 'server', join(directory, 'zoo.cfg')], { stdio: 'ignore' });
  const client = await connect({ servers: `127.0.0.1:${port}`, connectTimeoutMs: PATIENCE_MS });
  await client.createParents('/app/config', '{"port":5432}');
  const { child, url } = await startConsole(port);
  await measurePage(client, child, url);
  await client.close();
} finally {
  killAll();
  rmSync(directory, { recursive: true, force: true });
}
console.log(
  `${cpus().length} × ${cpus()[0].model}, Node.js ${process.versions.node}\n\n| | |\n| --- | --- |\n${rows.join('\n')}`,
);

async function measurePage(client, consoleProcess, url) {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(url);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('treeitem', { name: 'app' }).waitFor();

    const scripts = readdirSync(ASSETS).filter((name) => name.endsWith('.js'));
    const bytes = scripts.map((name) => [name, gzipSync(readFileSync(join(ASSETS, name))).length]);
    const loaded = await page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)");
    const first = bytes.filter(([name]) => loaded.some((one) => one.endsWith(name)));
    row('scripts, compressed: for the first view; all', `${kb(first)}; ${kb(bytes)} KB`);
    row('first view, nothing in the cache', `${await firstView(browser, context, url)} ms`);
    row('first view again', `${await median(5, () => viewTime(page, url))} ms`);

    await measureChanges(client, page, url);
    row('memory of the console behind that', `${memoryOf(consoleProcess)} MB`);
    await measureChildren(client, page, url);
    row(
      `memory of the console with ${children.toLocaleString('en-US')} children and the index`,
      `${memoryOf(consoleProcess)} MB`,
    );
  } finally {
    await browser.close();
  }
}

/** From the start of the navigation until a row of the tree is rendered. */
async function viewTime(page, url) {
  await page.goto('about:blank');
  await page.goto(`${url}#/service/tree`, { waitUntil: 'commit' });
  return await page.evaluate(`new Promise((resolve) => {
    const look = () =>
      document.querySelector('[role=treeitem][aria-level="2"]') === null
        ? requestAnimationFrame(look)
        : resolve(Math.round(performance.now()));
    look();
  })`);
}

/** First view of a logged-in browser with an empty cache. */
async function firstView(browser, context, url) {
  const storageState = await context.storageState();
  return await median(5, async () => {
    const other = await browser.newContext({ viewport: { width: 1280, height: 800 }, storageState });
    const page = await other.newPage();
    const time = await viewTime(page, url);
    await other.close();
    return time;
  });
}

/** 1,000 changes a second: from just before a change is sent until its value is rendered. */
async function measureChanges(client, page, url) {
  for (let i = 0; i < 50; i++) await client.createParents(`/busy/${i}`, '0');
  await page.goto(`${url}#/service/live/busy`);
  await page.getByText('Nothing has happened yet.').waitFor();
  await page.evaluate(`(() => {
    window.lags = [];
    let last = '';
    const look = () => {
      const row = document.querySelector('.log-row')?.cloneNode(true);
      for (const gone of row?.querySelectorAll('del') ?? []) gone.remove();
      const text = /sent (\\d{13});/.exec(row?.textContent ?? '')?.[1] ?? '';
      if (text !== '' && text !== last) {
        last = text;
        window.lags.push(Date.now() - Number(text));
      }
      requestAnimationFrame(look);
    };
    look();
  })()`);
  const begun = performance.now();
  const ticks = (seconds * 1000) / TICK_MS;
  for (let tick = 0; tick < ticks; tick++) {
    await Promise.all(Array.from({ length: TICK_MS }, (_, i) => client.set(`/busy/${i % 50}`, `sent ${Date.now()};`)));
    await sleep(Math.max(0, begun + (tick + 1) * TICK_MS - performance.now()));
  }
  const rate = Math.round((ticks * TICK_MS) / ((performance.now() - begun) / 1000));
  await page.getByText(`${(ticks * TICK_MS).toLocaleString('en-US')} changes`).waitFor();
  const gaps = await page.getByText('left out here').count();
  const lags = (await page.evaluate('window.lags')).sort((a, b) => a - b);
  row(
    `${rate} changes a second for ${seconds} s: shown after, median and 99 %; gaps`,
    `${lags[lags.length >> 1]} and ${lags[Math.floor(lags.length * 0.99)]} ms; ${gaps}`,
  );
}

async function measureChildren(client, page, url) {
  await client.create('/million');
  for (let i = 0; i < children; i += 1000) {
    const transaction = client.transaction();
    for (let k = i; k < Math.min(children, i + 1000); k++) transaction.create(`/million/n-${`${k}`.padStart(7, '0')}`);
    await transaction.commit();
  }
  await page.goto(`${url}#/service/tree/million`);
  await page.reload();
  await page.getByRole('treeitem', { name: 'million' }).dblclick();
  const begun = performance.now();
  await page.getByRole('treeitem', { name: 'n-0000000' }).waitFor();
  row(
    `${children.toLocaleString('en-US')} children: shown after`,
    `${((performance.now() - begun) / 1000).toFixed(1)} s`,
  );
  const frames = await page.evaluate(`new Promise((resolve) => {
    const tree = document.getElementById('tree');
    const times = [];
    const step = (at) => {
      times.push(at);
      tree.scrollTop += times.length % 100 === 0 ? 500000 : 300;
      if (at - times[0] < 10000) requestAnimationFrame(step);
      else resolve(times.slice(1).map((time, i) => time - times[i]));
    };
    requestAnimationFrame(step);
  })`);
  const sorted = frames.sort((a, b) => a - b);
  const rate = (frames.length / frames.reduce((sum, ms) => sum + ms, 0)) * 1000;
  row(
    'scrolled through, 300 pixels a frame and far jumps',
    `${rate.toFixed(0)} frames a second, 99 % within ${sorted[Math.floor(sorted.length * 0.99)].toFixed(0)} ms`,
  );
  await page.keyboard.press('/');
  const asked = performance.now();
  const name = `n-${`${Math.floor(children * 0.47)}`.padStart(7, '0')}`;
  await page.keyboard.insertText(name);
  await page.getByRole('option', { name: `/million/${name}` }).waitFor();
  row('one of them found by its name, while the index is read', `${((performance.now() - asked) / 1000).toFixed(1)} s`);
  await page.goto(`${url}#/service/sizes`);
  await page
    .getByRole('status')
    .filter({ hasText: /^[\d,]{7,} znodes, [^·]*$/ })
    .waitFor();
  row('the index is whole after', `${((performance.now() - asked) / 1000).toFixed(0)} s`);
}

async function startConsole(port) {
  const args = [COMMAND, 'console', '--server', `127.0.0.1:${port}`, '--listen', '127.0.0.1:0', '--no-key'];
  const child = start(execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  let printed = '';
  for await (const chunk of child.stdout) {
    printed += chunk;
    const [, url] = /open (\S+)\n/.exec(printed) ?? [];
    if (url !== undefined) return { child, url };
  }
  throw new Error(`the console ended: ${printed}`);
}

/** Peak memory of the process. */
function memoryOf({ pid }) {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1000);
}

async function median(times, measure) {
  const all = [];
  for (let i = 0; i < times; i++) all.push(await measure());
  return all.sort((a, b) => a - b)[times >> 1];
}

function kb(files) {
  return Math.round(files.reduce((sum, [, bytes]) => sum + bytes, 0) / 1000);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
