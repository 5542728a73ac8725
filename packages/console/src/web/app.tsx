import { type ReactNode, useCallback, useEffect, useMemo, useState } from 'react';
import type { Failure, Hello } from '../api/messages.ts';
import { ask, hello as askHello, clusterUrl, failureOf } from './api.ts';
import { GoKey } from './go-key.ts';
import { FailureView } from './parts/failure-view.tsx';
import { KeyPage, LoginPage } from './people/login-page.tsx';
import { go, PAGES, useRoute } from './route.ts';
import { type Session, SessionContext } from './session.ts';
import { KeysDialog, Shell, type Toast } from './shell.tsx';
import { STREAM } from './stream.ts';
import { TEXTS } from './texts.ts';
import { isTyping } from './znode/znode-pane.tsx';

/** From the first request to the requested view. */
export function App(): ReactNode {
  const [hello, setHello] = useState<Hello | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const begin = useCallback(() => {
    setFailure(null);
    enter().then(setHello, (error: unknown) => setFailure(failureOf(error)));
  }, []);
  useEffect(begin, [begin]);
  const route = useRoute();
  const cluster = hello?.clusters.find(({ name }) => name === route.cluster) ?? hello?.clusters[0] ?? null;
  useEffect(() => {
    if (cluster !== null && route.cluster !== cluster.name) go({ ...route, cluster: cluster.name }, true);
  }, [cluster, route]);
  if (failure !== null) {
    return (
      <main className="gate" id="content">
        <FailureView failure={failure} retry={begin} />
      </main>
    );
  }
  if (hello === null) return <p className="quiet">{TEXTS.loading}</p>;
  if (!hello.isAdmitted) return <KeyPage onHello={setHello} />;
  if (cluster === null) return null;
  if (cluster.login === null) {
    const onHello = (answer: Hello): void => {
      setHello(answer);
      STREAM.restart();
    };
    return <LoginPage cluster={cluster} key={cluster.name} onHello={onHello} />;
  }
  return <Inside clusterName={cluster.name} hello={hello} key={cluster.name} setHello={setHello} />;
}

/** Says hello; the key at the end of the URL is removed, so that it is not shown or kept. */
async function enter(): Promise<Hello> {
  const hello = await askHello();
  const key = /^#key=([\w-]+)$/.exec(location.hash)?.[1];
  if (key === undefined) return hello;
  history.replaceState(null, '', location.pathname);
  return hello.isAdmitted ? hello : await askHello('enter', { key }).catch(() => hello);
}

function Inside({
  hello,
  clusterName,
  setHello,
}: {
  readonly hello: Hello;
  readonly clusterName: string;
  setHello(hello: Hello): void;
}): ReactNode {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const [hasKeys, setKeys] = useState(false);
  const cluster = hello.clusters.find(({ name }) => name === clusterName)!;
  const drop = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const notify = useCallback<Session['notify']>((text, { undo = false, isError = false, stays = false } = {}) => {
    const id = Math.random();
    setToasts((all) => [...all.map((toast) => ({ ...toast, undo: false })).slice(-2), { id, text, undo, isError }]);
    if (stays) return;
    setTimeout(() => setToasts((all) => all.filter((toast) => toast.id !== id)), undo ? 15_000 : 6000);
  }, []);
  const session = useMemo<Session>(
    () => ({
      hello,
      cluster,
      isWritable: hello.isWritable,
      notify,
      fail: (error) => notify(failureOf(error).message, { isError: true }),
      setHello,
    }),
    [hello, cluster, notify, setHello],
  );
  const undo = useCallback(() => {
    ask<{ readonly undone: string }>(clusterUrl(clusterName, 'undo'), {}).then(
      ({ undone }) => notify(TEXTS.undo.done(undone)),
      (error: unknown) => notify(failureOf(error).message, { isError: true }),
    );
    setToasts([]);
  }, [clusterName, notify]);
  useEffect(() => pageKeys(clusterName, { undo, help: () => setKeys(true) }), [clusterName, undo]);
  return (
    <SessionContext value={session}>
      <Shell onDropToast={drop} onHelp={() => setKeys(true)} onUndo={undo} toasts={toasts} />
      {hasKeys && <KeysDialog onClose={() => setKeys(false)} />}
    </SessionContext>
  );
}

/** The global keyboard shortcuts, inactive while typing. @returns a function that removes them */
function pageKeys(cluster: string, { undo, help }: { undo(): void; help(): void }): () => void {
  const goKey = new GoKey();
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector('dialog[open]') !== null) return;
    const nowMs = performance.now();
    const page = PAGES['tlskezh'.indexOf(event.key)];
    if (page !== undefined && goKey.take(nowMs)) {
      const { hash } = location;
      const path = hash.split('/').length > 3 ? decodeURIComponent(`/${hash.split('/').slice(3).join('/')}`) : '/';
      go({ cluster, page, path });
      event.stopImmediatePropagation();
    } else if (event.key === 'g') goKey.press(nowMs);
    else if (event.key === '/') document.getElementById('search')?.focus();
    else if (event.key === 'u') undo();
    else if (event.key === '?') help();
    else return;
    event.preventDefault();
  };
  addEventListener('keydown', onKey, true);
  return () => removeEventListener('keydown', onKey, true);
}
