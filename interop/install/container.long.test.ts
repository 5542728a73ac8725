import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { dockerfileToBash, parseDockerfile } from './dockerfile.ts';
import { buildSingleFile } from './single-file.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = fileURLToPath(new URL('./container/', import.meta.url));
const DOCKERFILE = parseDockerfile(readFileSync(join(ROOT, 'deploy/container/Dockerfile'), 'utf8'));

/** Written by the official image without variables. */
const DEFAULTS = [
  ...['dataDir=/data', 'dataLogDir=/datalog', 'tickTime=2000', 'initLimit=5', 'syncLimit=2'],
  ...['autopurge.snapRetainCount=3', 'autopurge.purgeInterval=0', 'maxClientCnxns=60', 'standaloneEnabled=true'],
  ...['admin.enableServer=true', 'server.1=localhost:2888:3888;2181'],
];

const MEMBER = [
  ...['dataDir=/member2/data', 'dataLogDir=/member2/datalog', 'tickTime=1000', 'initLimit=10', 'syncLimit=4'],
  ...['autopurge.snapRetainCount=5', 'autopurge.purgeInterval=2', 'maxClientCnxns=0', 'standaloneEnabled=false'],
  ...['admin.enableServer=false', 'server.1=127.0.0.1:2888:3888;127.0.0.1:2191'],
  ...['server.2=127.0.0.1:2889:3889;127.0.0.1:2192', 'server.3=127.0.0.1:2890:3890;127.0.0.1:2193'],
  ...['4lw.commands.whitelist=srvr, mntr, ruok', 'preAllocSize=1024', 'snapCount=5000'],
];

test('the image has the ports, volumes, entrypoint and command of the official one', () => {
  const texts = Object.fromEntries(DOCKERFILE.map((instruction) => [instruction.name, instruction.text]));
  expect(texts).toMatchObject({
    VOLUME: '["/data", "/datalog", "/logs"]',
    EXPOSE: '2181 2888 3888 8080',
    ENTRYPOINT: '["docker-entrypoint.sh"]',
    CMD: '["zkServer.sh", "start-foreground"]',
  });
});

describeWith(['packagingTools', 'debian'], 'the image, built and run without Docker', () => {
  test('handles variables, files and signals like the official image', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'meerkat-image-'));
    try {
      const context = join(directory, 'context');
      mkdirSync(join(context, 'dist'), { recursive: true });
      buildSingleFile(join(context, 'dist/meerkat-linux-x64'), 'x64');
      cpSync(join(ROOT, 'deploy/container'), join(context, 'deploy/container'), { recursive: true });
      const steps = join(directory, 'steps');
      writeFileSync(steps, dockerfileToBash(DOCKERFILE));
      const script = join(HERE, 'life-of-a-container.sh');
      const child = spawn(join(HERE, 'build.sh'), [directory, steps, script], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
      const found = Object.fromEntries(
        output.split('\n').flatMap((line) => {
          const at = line.indexOf(': ');
          return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 2).trim()]];
        }),
      );
      expect(found).toMatchObject({
        'zoo.cfg': DEFAULTS.join('|'),
        myid: '1',
        user: '1000 1000 meerkat server /conf/zoo.cfg',
        owner: '1000:1000|1000:1000|1000:1000',
        status: 'Mode: standalone',
        // ZooKeeper's default: only srvr is in the whitelist.
        ruok: 'ruok is not executed because it is not in the whitelist.',
        create: 'Created /greeting',
        admin: '{"command":"ruok","error":null}',
        stopped: 'exit code 0; 1 graceful end',
        'status of a stopped one': 'exit code 1',
        again: 'good morning; tickTime=2000; 1',
        'own file': 'Mode: standalone; clientPort=2182',
        'member without a quorum': 'exit code 1',
        'zoo.cfg of a member': MEMBER.join('|'),
        members: '1|2|3 Mode: follower|Mode: follower|Mode: leader',
        'members stopped': 'exit code 0',
      });
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
