import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';

/** Ends by itself, or never: no process.exit. */
const SCRIPT = `
  import { TcpProxy, TestEnsemble, TestServer } from '@meerkat/testing';
  import { connect } from 'node:net';
  for (const options of [{}, { storage: 'directory' }]) {
    const server = await TestServer.start(options);
    const proxy = await TcpProxy.start({ target: server.port });
    proxy.delay(1);
    const socket = connect(proxy.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('srvr');
    await new Promise((resolve) => socket.once('data', resolve));
    await server.restart();
    server.pause();
    proxy.delay(1_000_000);
    const late = connect(proxy.port, '127.0.0.1').on('error', () => {});
    await new Promise((resolve) => late.once('connect', resolve));
    late.write('srvr');
    await proxy.stop();
    await server.dispose();
  }
  const ensemble = await TestEnsemble.start();
  ensemble.isolate(1);
  await ensemble.server(2).kill();
  ensemble.server(3).pause();
  await ensemble.dispose();
  console.log('done');
`;

test('nothing keeps a process alive once its servers are disposed of and its proxies stopped', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', SCRIPT], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const [code] = await once(child, 'close');
  expect(output).toBe('done\n');
  expect(code).toBe(0);
});
