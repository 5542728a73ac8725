// `npm run bench -- audit`: the cost of the audit log, per second of the server's own CPU time.
import { join } from 'node:path';
import { Server } from '../engine.mjs';
import { compare, cpuSeconds, load } from './tls.mjs';

const WARM_UPS = 3;
const SETTINGS = {
  without: {},
  text: { 'audit.enable': true, 'audit.file': 'audit.log' },
  json: { 'audit.enable': true, 'audit.file': 'audit.log', 'audit.format': 'json' },
};

/** @returns Markdown */
export async function measureAudit({ engine, pairs, seconds }, directory, progress) {
  const servers = [];
  for (const [name, settings] of Object.entries(SETTINGS)) {
    const place = join(directory, name);
    const file = settings['audit.file'] === undefined ? {} : { 'audit.file': join(place, settings['audit.file']) };
    const server = new Server(engine, place, { ...settings, ...file });
    await server.start();
    servers.push({ name, server, figures: [] });
  }
  for (let pair = -WARM_UPS; pair < pairs; pair++) {
    progress(`writes with the audit log and without, ${pair < 0 ? 'to warm up' : `${pair + 1} of ${pairs}`}`);
    for (const { server, figures } of servers) {
      const before = cpuSeconds(server.pid);
      const { count } = await load({ port: server.port, tls: null, job: 'writes', seconds });
      if (pair >= 0) figures.push(count / (cpuSeconds(server.pid) - before));
    }
  }
  const [without, ...others] = servers;
  const rows = others.map(
    ({ name, figures }) =>
      `| writes of 1 KiB with the audit log (${name}), to those without | ${compare(figures, without.figures)} |`,
  );
  for (const { server } of servers) await server.destroy();
  return ['| what | figure |', '| --- | ---: |', ...rows].join('\n');
}
