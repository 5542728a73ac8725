import type { ConfiguredMember, EnsembleConfig } from '@meerkat/console/membership';
import type { Column } from '../../output/column.ts';
import type { Report } from '../../output/report.ts';

/** @param isForClients only the version, and where to connect, on one line as zkCli has it */
export async function describeConfig(report: Report, config: EnsembleConfig, isForClients: boolean): Promise<void> {
  const { text, version, members } = config;
  if (!report.isForPeople) {
    const listing = await report.list(COLUMNS);
    for (const member of members) await listing.add({ version, member });
    await listing.end();
  } else if (isForClients) {
    const clients = members.flatMap(({ client }) => (client === null ? [] : [client]));
    await report.line(`${version ?? ''} ${clients.join(',')}`);
  } else if (text === '')
    await report.line('no members are stored: the server has no ensemble, or reconfigEnabled is not true there');
  else await report.line(text.trimEnd());
}

const COLUMNS: readonly Column<{ readonly version: string | null; readonly member: ConfiguredMember }>[] = [
  { name: 'id', value: ({ member }) => member.id },
  { name: 'server', value: ({ member }) => member.text },
  { name: 'client', value: ({ member }) => member.client },
  { name: 'version', value: ({ version }) => version },
];
