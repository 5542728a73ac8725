import { type FormEvent, type ReactNode, useState } from 'react';
import type { ClusterInfo, Failure, Hello, LoginMethod } from '../../api/messages.ts';
import { clusterUrl, failureOf, hello } from '../api.ts';
import { FailureNote } from '../parts/failure-view.tsx';
import { TEXTS } from '../texts.ts';

/** The login to a service. */
export function LoginPage({
  cluster,
  onHello,
}: {
  readonly cluster: ClusterInfo;
  onHello(hello: Hello): void;
}): ReactNode {
  const { login: texts } = TEXTS;
  const methods: readonly LoginMethod[] = [
    ...(cluster.hasOwnLogin ? (['own'] as const) : []),
    'none',
    'digest',
    'sasl',
    ...(cluster.hasTls ? (['certificate'] as const) : []),
  ];
  const [method, setMethod] = useState<LoginMethod>(methods[0] ?? 'none');
  const [user, setUser] = useState('');
  const [password, setPassword] = useState('');
  const [pem, setPem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      onHello(await hello(clusterUrl(cluster.name, 'login'), { method, user, password, pem, passphrase: password }));
    } catch (error) {
      setFailure(failureOf(error));
      setBusy(false);
    }
  };
  return (
    <main className="gate" id="content">
      <form className="card" onSubmit={(event) => void submit(event)}>
        <h1>{texts.title(cluster.name)}</h1>
        <p className="dim mono wrap">{texts.servers(cluster.servers.join(', '))}</p>
        <label>
          {texts.how}
          <select ref={focusFirst} onChange={({ target }) => setMethod(target.value as LoginMethod)} value={method}>
            {methods.map((one) => (
              <option key={one} value={one}>
                {texts[one]}
              </option>
            ))}
          </select>
        </label>
        {(method === 'digest' || method === 'sasl') && (
          <>
            <label>
              {texts.user}
              <input autoComplete="username" onChange={({ target }) => setUser(target.value)} required value={user} />
            </label>
            <label>
              {texts.password}
              <input
                autoComplete="current-password"
                onChange={({ target }) => setPassword(target.value)}
                type="password"
                value={password}
              />
            </label>
          </>
        )}
        {method === 'digest' && <p className="dim">{texts.digestHint}</p>}
        {method === 'certificate' && (
          <>
            <label>
              {texts.pem}
              <textarea
                className="mono"
                onChange={({ target }) => setPem(target.value)}
                required
                rows={6}
                spellCheck={false}
                value={pem}
              />
            </label>
            <label>
              {texts.passphrase}
              <input
                autoComplete="off"
                onChange={({ target }) => setPassword(target.value)}
                type="password"
                value={password}
              />
            </label>
          </>
        )}
        {failure !== null && <FailureNote failure={failure} />}
        <button className="primary" disabled={isBusy} type="submit">
          {isBusy ? texts.busy : texts.submit}
        </button>
      </form>
    </main>
  );
}

/** Asks for the key at the end of the URL. */
export function KeyPage({ onHello }: { onHello(hello: Hello): void }): ReactNode {
  const { key: texts } = TEXTS;
  const [key, setKey] = useState('');
  const [failure, setFailure] = useState<Failure | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    hello('enter', { key: key.trim().replace(/^.*#key=/, '') }).then(onHello, (error: unknown) =>
      setFailure(failureOf(error)),
    );
  };
  return (
    <main className="gate" id="content">
      <form className="card" onSubmit={submit}>
        <h1>{texts.title}</h1>
        <p className="dim">{texts.text}</p>
        <label>
          {texts.label}
          <input
            autoComplete="off"
            ref={focusFirst}
            onChange={({ target }) => setKey(target.value)}
            type="password"
            value={key}
          />
        </label>
        {failure !== null && <FailureNote failure={failure} />}
        <button className="primary" type="submit">
          {texts.enter}
        </button>
      </form>
    </main>
  );
}

/** It is the only thing to do on its page. */
function focusFirst(element: HTMLElement | null): void {
  element?.focus();
}
