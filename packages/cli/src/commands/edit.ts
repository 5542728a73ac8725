import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { BadVersionError, type Client, NodeExistsError, NoNodeError, nameOf, type Stat } from '@meerkat/client';
import type { Column } from '../output/column.ts';
import { statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, fileFailure } from '../run/command-failure.ts';
import { confirm } from '../run/confirmation.ts';
import type { Context } from '../run/context.ts';
import { editorOf, openEditor } from '../run/editor.ts';
import { CommandExit } from '../run/exit-code.ts';
import { explainFailure } from '../run/failure.ts';
import { type EditableValue, makeEditable } from '../value/editable-value.ts';

interface Options {
  readonly create?: boolean;
  readonly hex?: boolean;
  readonly editor?: string;
}

/** `edit`: the data of a znode in an editor. */
export const edit: DefineCommand = (command, host) => {
  command
    .description(
      'Edit the data of a znode in an editor. They are written only if they were not changed meanwhile; otherwise your ' +
        'text stays in a file, and you are told where. JSON must be JSON again; gzip is unpacked and packed again.',
    )
    .argument('<path>', 'the znode')
    .option('--create', 'if it is missing, begin with nothing and create it, with its parents')
    .option('--hex', 'edit the bytes as hex digits')
    .option('--editor <command>', 'what to edit with (VISUAL, EDITOR; default vi)')
    .addHelpText(
      'after',
      examples([
        ['meerkat edit /app/config', 'in $VISUAL or $EDITOR'],
        ["meerkat edit /app/config --editor 'code --wait'", 'in another one'],
        ["meerkat edit /app/hosts --editor 'sed -i s/old/new/'", 'by a program'],
      ]),
    )
    .action((path: string, options: Options) => host.run((context) => run(context, path, options)));
};

interface Edited {
  readonly path: string;
  readonly stat: Stat;
  readonly hasChanged: boolean;
}

async function run(context: Context, text: string, options: Options): Promise<CommandExit> {
  const { report, io, call } = context;
  const path = context.resolve(text);
  const editor = editorOf(io, options.editor);
  const client = await context.connect();
  const before = await read(context, client, path, options);
  const value = makeEditable(before.data, options.hex === true, path);
  const file = await makeFile(path, value);
  let edited: Edited;
  try {
    const data = await editUntilGood(context, editor, file, value);
    if (before.stat !== null && Buffer.compare(data, before.data) === 0) {
      edited = { path, stat: before.stat, hasChanged: false };
    } else {
      const written =
        before.stat === null
          ? client.createParents(path, data, call).then(({ stat }) => stat)
          : client.set(path, data, { ...call, version: before.stat.version });
      edited = { path, stat: await written, hasChanged: true };
    }
  } catch (error) {
    throw await explainKept(context, client, path, file, value, error);
  }
  await rm(dirname(file), { recursive: true, force: true });
  if (!report.isForPeople) await report.one(COLUMNS, edited);
  else if (edited.hasChanged) context.note(`${path} has version ${edited.stat.version} now`);
  else context.note(`${path} is as it was: nothing was written`);
  return CommandExit.ok;
}

const COLUMNS: readonly Column<Edited>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'changed', value: ({ hasChanged }) => hasChanged },
  ...statColumnsOf<Edited>(({ stat }) => stat),
];

interface Before {
  readonly data: Uint8Array;
  /** null: the znode is to be created. */
  readonly stat: Stat | null;
}

async function read({ call }: Context, client: Client, path: string, options: Options): Promise<Before> {
  try {
    return await client.get(path, call);
  } catch (error) {
    if (error instanceof NoNodeError && options.create === true) return { data: new Uint8Array(0), stat: null };
    throw error;
  }
}

/** In a directory of its own: editors leave other files beside it. Only the owner may read both. */
async function makeFile(path: string, { text, suffix }: EditableValue): Promise<string> {
  const name = nameOf(path)
    .replace(/[^\w.-]/g, '_')
    .replace(/^[.-]/, '_')
    .slice(0, NAME_LENGTH_MAX);
  const hasSuffix = /\.\w+$/.test(name) && suffix !== '.hex';
  try {
    const directory = await mkdtemp(join(tmpdir(), 'meerkat-edit-'));
    const file = join(directory, `${name === '' ? 'root' : name}${hasSuffix ? '' : suffix}`);
    await writeFile(file, text, { mode: 0o600, flag: 'wx' });
    return file;
  } catch (error) {
    throw fileFailure(`cannot make a file to edit in ${tmpdir()}`, error);
  }
}

const NAME_LENGTH_MAX = 80;

/** As often as the person wants to mend what is no JSON. */
async function editUntilGood(
  context: Context,
  editor: string,
  file: string,
  value: EditableValue,
): Promise<Uint8Array> {
  for (;;) {
    await openEditor(editor, file);
    try {
      return await value.toData(await readFile(file, 'utf8'));
    } catch (error) {
      const isTerminal = context.io.stdin.isTTY === true && context.io.stderr.isTTY === true;
      if (!(error instanceof CommandFailure) || !isTerminal || context.signal.aborted) throw error;
      if (!(await confirm(context, `${error.message}\nedit it again?`))) throw error;
    }
  }
}

/** What went wrong, where the text is, and how to continue with it. An untouched text is not kept. */
async function explainKept(
  { call }: Context,
  client: Client,
  path: string,
  file: string,
  value: EditableValue,
  error: unknown,
): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null || text === value.text) {
    await rm(dirname(file), { recursive: true, force: true });
    return error;
  }
  const { message, exitCode } = explainFailure(error);
  const kept = `nothing was written; your text is in ${file}`;
  const target = `meerkat set ${shellWord(path)} --file ${shellWord(file)}${value.setOptions}`;
  if (error instanceof BadVersionError || error instanceof NodeExistsError) {
    const now = await client.exists(path, call).catch(() => null);
    const version = now === null ? '' : `; it has version ${now.version} now`;
    const condition = now === null ? '' : ` --if-version ${now.version}`;
    const look = `"meerkat get ${shellWord(path)}" shows theirs`;
    const words = `another client has changed ${path} meanwhile${version}: ${kept}\n${look}, "${target}${condition}" writes yours`;
    return new CommandFailure(CommandExit.badVersion, words, error);
  }
  const retryCommand = error instanceof NoNodeError ? `${target} --create` : target;
  return new CommandFailure(exitCode, `${message}: ${kept}\n"${retryCommand}" writes it`, error);
}

function shellWord(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
