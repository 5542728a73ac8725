import { type ReactNode, useState } from 'react';
import type { Changed, Extent, Failure, ZnodeInfo } from '../../api/messages.ts';
import { ask, clusterUrl, failureOf } from '../api.ts';
import { Dialog } from '../parts/dialog.tsx';
import { useResource, useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { join, split } from '../tree/tree-model.ts';
import { toBase64 } from './unpack.ts';

export interface DialogProps {
  readonly path: string;
  onDone(path: string | null): void;
}

/** Performs a change, and offers to undo it. */
export function useChange(): {
  readonly isBusy: boolean;
  readonly failure: Failure | null;
  run(what: string, body: object, describe: (changed: Changed) => string): Promise<Changed | null>;
} {
  const { cluster, notify } = useSession();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  return {
    isBusy,
    failure,
    async run(what, body, describe) {
      setBusy(true);
      setFailure(null);
      try {
        const changed = await ask<Changed>(clusterUrl(cluster.name, what), body);
        const behind = changed.undo === null && changed.noUndo !== null ? ` ${TEXTS.undo.not(changed.noUndo)}` : '';
        notify(`${describe(changed)}${behind}`, { undo: changed.undo !== null });
        return changed;
      } catch (error) {
        setFailure(failureOf(error));
        return null;
      } finally {
        setBusy(false);
      }
    },
  };
}

export function CreateDialog({ path, onDone }: DialogProps): ReactNode {
  const { create: texts } = TEXTS;
  const { isBusy, failure, run } = useChange();
  const [name, setName] = useState('');
  const [kind, setKind] = useState('persistent');
  const [isSequential, setSequential] = useState(false);
  const [ttl, setTtl] = useState('60000');
  const [value, setValue] = useState('');
  const submit = async (): Promise<void> => {
    const body = {
      path: join(path, name),
      kind,
      sequential: isSequential,
      parents: name.includes('/'),
      data: value === '' ? null : toBase64(new TextEncoder().encode(value)),
      ...(kind === 'ttl' ? { ttlMs: Number(ttl) } : {}),
    };
    const changed = await run('create', body, (done) => texts.done(done.path));
    if (changed !== null) onDone(changed.path);
  };
  return (
    <Dialog
      canSubmit={name !== '' || isSequential}
      failure={failure}
      isBusy={isBusy}
      onClose={() => onDone(null)}
      onSubmit={() => void submit()}
      submit={texts.submit}
      title={texts.title(path)}
    >
      <label>
        {texts.name}
        <input data-autofocus onChange={({ target }) => setName(target.value)} spellCheck={false} value={name} />
      </label>
      <label>
        {texts.kind}
        <select onChange={({ target }) => setKind(target.value)} value={kind}>
          {Object.entries(texts.kinds).map(([id, label]) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {kind === 'ttl' && (
        <label>
          {texts.ttl}
          <input inputMode="numeric" onChange={({ target }) => setTtl(target.value)} value={ttl} />
        </label>
      )}
      {kind !== 'container' && (
        <label className="check">
          <input checked={isSequential} onChange={({ target }) => setSequential(target.checked)} type="checkbox" />
          {texts.sequential}
        </label>
      )}
      <label>
        {texts.value}
        <textarea onChange={({ target }) => setValue(target.value)} rows={5} spellCheck={false} value={value} />
      </label>
    </Dialog>
  );
}

export function DeleteDialog({ path, onDone }: DialogProps): ReactNode {
  const { remove: texts } = TEXTS;
  const { cluster } = useSession();
  const { isBusy, failure, run } = useChange();
  const [typed, setTyped] = useState('');
  const extent = useResource(path, (signal) =>
    ask<Extent>(clusterUrl(cluster.name, 'extent', { path }), undefined, signal),
  );
  const { value } = extent;
  const { name } = split(path);
  const isLarge = value !== null && (value.znodes > 1 || value.isCut);
  const submit = async (): Promise<void> => {
    const changed = await run('delete', { path, recursive: isLarge }, (done) => texts.done(path, done.znodes));
    if (changed !== null) onDone(split(path).parent);
  };
  return (
    <Dialog
      canSubmit={value !== null && (!isLarge || typed === name)}
      failure={failure ?? extent.failure}
      isBusy={isBusy}
      isDangerous
      onClose={() => onDone(null)}
      onSubmit={() => void submit()}
      submit={texts.submit}
      title={texts.title(path)}
    >
      {value === null && extent.failure === null && <p>{texts.counting}</p>}
      {value !== null && (
        <>
          <p>
            <strong>{texts.what(value.znodes, value.bytes, value.isCut)}</strong>{' '}
            {value.ephemerals > 0 && texts.ephemerals(value.ephemerals)}
          </p>
          {isLarge && (
            <>
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard. */}
              <ul className="paths" tabIndex={0}>
                {value.sample.map((one) => (
                  <li key={one}>{one}</li>
                ))}
              </ul>
              <label>
                {texts.type(name)}
                <input
                  autoComplete="off"
                  data-autofocus
                  onChange={({ target }) => setTyped(target.value)}
                  spellCheck={false}
                  value={typed}
                />
              </label>
            </>
          )}
        </>
      )}
    </Dialog>
  );
}

export function RelocateDialog({ path, onDone, isMove }: DialogProps & { readonly isMove: boolean }): ReactNode {
  const { relocate: texts } = TEXTS;
  const { isBusy, failure, run } = useChange();
  const [to, setTo] = useState(isMove ? path : `${path}-copy`);
  const submit = async (): Promise<void> => {
    const changed = await run(isMove ? 'move' : 'copy', { from: path, to }, (done) => texts.done(to, done.znodes));
    if (changed !== null) onDone(to);
  };
  return (
    <Dialog
      canSubmit={to.startsWith('/') && to !== path}
      failure={failure}
      isBusy={isBusy}
      onClose={() => onDone(null)}
      onSubmit={() => void submit()}
      submit={isMove ? texts.moveSubmit : texts.copySubmit}
      title={isMove ? texts.move(path) : texts.copy(path)}
    >
      <label>
        {texts.to}
        <input data-autofocus onChange={({ target }) => setTo(target.value)} spellCheck={false} value={to} />
      </label>
      {isMove && <p className="dim">{texts.moveHint}</p>}
    </Dialog>
  );
}

export function AclDialog({
  znode,
  onDone,
}: {
  readonly znode: ZnodeInfo;
  onDone(path: string | null): void;
}): ReactNode {
  const { isBusy, failure, run } = useChange();
  // The state when the dialog opened: a later change must neither replace the input nor be overwritten unseen.
  const [version] = useState(znode.stat.aversion);
  const [text, setText] = useState(() =>
    (znode.acl ?? []).map(({ perms, scheme, id }) => `${scheme}:${id}:${perms}`).join('\n'),
  );
  const submit = async (): Promise<void> => {
    const acl = text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => {
        const first = line.indexOf(':');
        const last = line.lastIndexOf(':');
        return {
          scheme: line.slice(0, first).trim(),
          id: line.slice(first + 1, last),
          perms: line.slice(last + 1).trim(),
        };
      });
    const changed = await run('acl', { path: znode.path, acl, version }, () => TEXTS.edit.saved(znode.path));
    if (changed !== null) onDone(znode.path);
  };
  return (
    <Dialog
      failure={failure}
      isBusy={isBusy}
      onClose={() => onDone(null)}
      onSubmit={() => void submit()}
      submit={TEXTS.edit.save}
      title={`${TEXTS.acl.edit}: ${znode.path}`}
    >
      <label>
        scheme:id:cdrwa
        <textarea
          className="mono"
          data-autofocus
          onChange={({ target }) => setText(target.value)}
          rows={6}
          spellCheck={false}
          value={text}
        />
      </label>
    </Dialog>
  );
}
