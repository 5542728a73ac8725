import type { Profile } from '../connection/profiles.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';

interface Options {
  readonly check?: boolean;
  readonly where?: boolean;
}

/** `profiles`: the named connections, without their secrets. */
export const profiles: DefineCommand = (command, host) => {
  command
    .argument('[names...]', 'profiles; all of them if none is named')
    .option('--check', 'connect with each, and read "/"')
    .option('--where', 'print the paths of the two files, whether they are there or not')
    .addHelpText('after', HOW_TO_MAKE_ONE)
    .action((names: string[], options: Options) =>
      host.run((context) => {
        if (options.where === true) return printFiles(context);
        return options.check === true ? check(context, names) : print(context, names);
      }),
    );
};

const HOW_TO_MAKE_ONE = `
A profile is an entry of the file profiles.json, which you write:

  { "default": "local",
    "profiles": {
      "local": { "server": "127.0.0.1:2181" },
      "prod":  { "server": "zk1:2281,zk2:2281", "chroot": "/app",
                 "tls": { "ca": "ca.pem", "cert": "me.pem", "key": "me.key" } } } }

Its secrets stand apart, in secrets.json beside it, which only you may read (chmod 600):

  { "prod": { "auth": ["digest:ann:secret"], "sasl": "ann:secret" } }

Other fields: sessionTimeout, readOnly; serverName and insecure of tls; tlsPassphrase of a
secret. A secret that begins with @ names a file. Files are relative to profiles.json, or to ~/.
${examples([
  ['meerkat profiles', 'what there is, and which one is the default'],
  ['meerkat profiles --where', 'where the files are'],
  ['meerkat profiles prod --check', 'whether it can connect'],
  ['meerkat --profile prod ls /', 'use it; MEERKAT_PROFILE=prod does the same'],
  ['meerkat cp -r prod:/app /copy', 'a profile before a path is another service'],
])}`;

interface Listed {
  readonly profile: Profile;
  readonly isDefault: boolean;
}

/** @throws InvocationFailure when a name is none of them */
async function listed({ io }: Context, names: readonly string[]): Promise<readonly Listed[]> {
  const { readProfiles } = await import('../connection/profiles.ts');
  const { path, profiles: all, default: defaultName } = readProfiles(io.env);
  const missing = names.find((name) => !all.some((profile) => profile.name === name));
  if (missing !== undefined) {
    const known = all.length === 0 ? 'it has none' : `it has ${all.map(({ name }) => name).join(', ')}`;
    throw new InvocationFailure(`there is no profile "${missing}" in ${path}: ${known}`);
  }
  return all
    .filter(({ name }) => names.length === 0 || names.includes(name))
    .map((profile) => ({ profile, isDefault: profile.name === defaultName }));
}

async function print(context: Context, names: readonly string[]): Promise<CommandExit> {
  const { report } = context;
  const found = await listed(context, names);
  if (found.length === 0) {
    const { profilesFile } = await import('../connection/profiles-file.ts');
    context.note(
      `there are no profiles in ${profilesFile(context.io.env).path}; "meerkat profiles --help" says how to make one`,
    );
  }
  const list = await report.list(COLUMNS);
  for (const item of found) await list.add(item);
  await list.end();
  return CommandExit.ok;
}

const COLUMNS: readonly Column<Listed>[] = [
  { name: 'name', value: ({ profile }) => profile.name },
  { name: 'default', value: ({ isDefault }) => isDefault, text: ({ isDefault }) => (isDefault ? 'default' : '') },
  { name: 'server', value: ({ profile }) => profile.server },
  { name: 'chroot', value: ({ profile }) => profile.chroot ?? null },
  { name: 'tls', value: ({ profile }) => profile.tls !== undefined, text: ({ profile }) => tlsText(profile) },
  {
    name: 'credentials',
    value: ({ profile }) => credentialsOf(profile),
    text: ({ profile }) => credentialsOf(profile).join(' '),
  },
];

function tlsText({ tls }: Profile): string {
  if (tls === undefined) return '';
  if (tls.insecure === true) return 'insecure';
  return tls.cert === undefined ? 'yes' : 'with certificate';
}

/** The identity of the profile: names and paths of files, never secrets. */
function credentialsOf({ auth = [], sasl }: Profile): readonly string[] {
  return [...auth.map(withoutSecret), ...(sasl === undefined ? [] : [withoutSecret(`sasl:${sasl}`)])];
}

/** `digest:ann:secret` becomes `digest:ann`; of a scheme that we do not know everything behind it may be secret. */
function withoutSecret(text: string): string {
  if (text.startsWith('@')) return text;
  const [scheme = '', id = ''] = text.split(':');
  return scheme === 'digest' || scheme === 'sasl' ? `${scheme}:${id}` : scheme;
}

async function printFiles({ io, report }: Context): Promise<CommandExit> {
  const { profilesFile } = await import('../connection/profiles-file.ts');
  const { path, secretsPath } = profilesFile(io.env);
  if (report.isForPeople) await report.line(`${path}\n${secretsPath}`);
  else await report.one(FILE_COLUMNS, { path, secretsPath });
  return CommandExit.ok;
}

const FILE_COLUMNS: readonly Column<{ readonly path: string; readonly secretsPath: string }>[] = [
  { name: 'profiles', value: ({ path }) => path },
  { name: 'secrets', value: ({ secretsPath }) => secretsPath },
];

interface Checked {
  readonly name: string;
  readonly server: string;
  readonly ms: number;
  readonly failure: string | null;
  readonly exitCode: CommandExit;
}

async function check(context: Context, names: readonly string[]): Promise<CommandExit> {
  const { report } = context;
  const found = await listed(context, names);
  const list = await report.list(checkColumns(context));
  let exitCode: CommandExit = CommandExit.ok;
  const results = found.map(({ profile }) => checkOne(context, profile));
  for (const result of results) {
    const checked = await result;
    if (exitCode === CommandExit.ok) exitCode = checked.exitCode;
    await list.add(checked);
  }
  await list.end();
  return exitCode;
}

async function checkOne(context: Context, { name, server }: Profile): Promise<Checked> {
  const startMs = performance.now();
  const result = (failure: string | null, exitCode: CommandExit): Checked => {
    return { name, server, ms: Math.round(performance.now() - startMs), failure, exitCode };
  };
  try {
    const { client, path } = await context.locate(`${name}:/`);
    await client.exists(path, context.call);
    return result(null, CommandExit.ok);
  } catch (error) {
    if (context.signal.aborted) throw error;
    const { explainFailure } = await import('../run/failure.ts');
    const { message, exitCode } = explainFailure(error);
    return result(message, exitCode);
  }
}

/** In a row of a table: of a list of attempts, the attempts. */
function shortened(failure: string): string {
  const [first = '', ...more] = failure.split('\n');
  const attempts = more.filter((line) => line.startsWith('  ')).map((line) => line.trim());
  return attempts.length === 0 ? first : attempts.join('; ');
}

function checkColumns({ report: { paint } }: Context): readonly Column<Checked>[] {
  return [
    { name: 'name', value: ({ name }) => name },
    { name: 'server', value: ({ server }) => server },
    { name: 'ms', value: ({ ms }) => ms, align: 'right' },
    {
      name: 'result',
      only: 'table',
      value: ({ failure }) => (failure === null ? paint.good('connected') : paint.bad(shortened(failure))),
    },
    { name: 'exitCode', only: 'data', value: ({ exitCode }) => exitCode },
    { name: 'failure', only: 'data', value: ({ failure }) => failure },
  ];
}
