import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readZooCfg } from '@meerkat/server/run';
import { makeDirectory } from '../run/make-directory.ts';
import { type Certificates, tlsLines, writeCertificates } from './certificates.ts';
import type { MemberPorts } from './ports.ts';

/** Where one server of the ensemble keeps what is its own. */
export interface MemberFiles {
  readonly id: number;
  /** Absolute. */
  readonly configuration: string;
  /** What the server prints. */
  readonly log: string;
}

/** What is chosen for all servers. */
export interface Settings {
  readonly tickTimeMs: number;
  /** TLS everywhere, with certificates made now. */
  readonly hasTls: boolean;
  /** Lines of zoo.cfg, which win over ours. */
  readonly lines: readonly string[];
}

/** What has been written. */
export interface Layout {
  readonly members: readonly MemberFiles[];
  /** Null without TLS. */
  readonly certificates: Certificates | null;
}

/** How many servers have data below a directory; 0 when it is new. */
export function countMembers(directory: string): number {
  try {
    return readdirSync(directory).filter((name) => /^[1-9]\d*$/.test(name)).length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

/**
 * Makes a directory for each server, or takes over the one that is there, with its zoo.cfg:
 *
 *     directory/1/zoo.cfg        written again
 *     directory/1/log            what the server prints
 *     directory/1/data/myid      and the data of the server
 *     directory/tls/             certificates, made again, when it has TLS
 *
 * @throws Node's error when that cannot be done, ConfigurationError when the settings cannot be used
 */
export async function writeLayout(
  directory: string,
  ports: readonly MemberPorts[],
  settings: Settings,
): Promise<Layout> {
  const members = ports.map(({ quorum, election }, i) => `server.${i + 1}=127.0.0.1:${quorum}:${election}`);
  const certificates = settings.hasTls ? await writeCertificates(join(directory, 'tls')) : null;
  const written = ports.map(({ client }, i) => {
    const id = i + 1;
    const own = join(directory, String(id));
    const data = join(own, 'data');
    makeDirectory(data);
    writeFileSync(join(data, 'myid'), `${id}\n`);
    const lines = [
      '# Written by "meerkat up" at each start.',
      ...(certificates === null
        ? [`clientPort=${client}`, 'clientPortAddress=127.0.0.1']
        : [`secureClientPort=${client}`, 'secureClientPortAddress=127.0.0.1', ...tlsLines(certificates)]),
      `dataDir=${data.replaceAll('\\', '\\\\')}`,
      `tickTime=${settings.tickTimeMs}`,
      'initLimit=20',
      'syncLimit=5',
      'maxSessionTimeout=60000',
      'maxClientCnxns=0',
      '4lw.commands.whitelist=*',
      // All of them would want one port.
      'admin.enableServer=false',
      // One server is an ensemble of one, so that it has a role and an epoch as the others.
      'standaloneEnabled=false',
      ...members,
      ...settings.lines,
    ];
    const configuration = join(own, 'zoo.cfg');
    const text = `${lines.join('\n')}\n`;
    readZooCfg({ text, file: configuration, workingDirectory: own });
    writeFileSync(configuration, text);
    return { id, configuration, log: join(own, 'log') };
  });
  return { members: written, certificates };
}
