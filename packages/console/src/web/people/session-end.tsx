import { type ReactNode, useState } from 'react';
import type { Failure, SessionEndInfo, SessionInfo } from '../../api/messages.ts';
import { ask, clusterUrl, failureOf } from '../api.ts';
import { Dialog } from '../parts/dialog.tsx';
import { useResource, useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';

/** Maximum number of listed paths of each kind. */
const PATHS_MAX = 5;

/** Whether a session can be ended from here, and if not, why not. */
export function EndOffer(props: { readonly session: SessionInfo; onEnd(end: SessionEndInfo): void }): ReactNode {
  const { session, server, isOurs } = props.session;
  const { isWritable } = useSession();
  const { end: texts } = TEXTS.sessions;
  if (isOurs) return <p className="dim">{texts.ours}</p>;
  if (!isWritable) return <p className="dim">{texts.readOnly}</p>;
  return <AskedOffer onEnd={props.onEnd} server={server} session={session} />;
}

function AskedOffer(props: {
  readonly session: string;
  readonly server: string;
  onEnd(end: SessionEndInfo): void;
}): ReactNode {
  const { session, server } = props;
  const { cluster } = useSession();
  const { end: texts } = TEXTS.sessions;
  const { value, failure } = useResource(`${cluster.name} ${session}`, (signal) =>
    ask<SessionEndInfo>(clusterUrl(cluster.name, 'session-end', { session, server }), undefined, signal),
  );
  if (failure !== null) return <WhyNot failure={failure} />;
  if (value === null) return <p className="dim">{texts.looking}</p>;
  return (
    <section>
      <p className="dim">{texts.can}</p>
      <button className="danger" onClick={() => props.onEnd(value)} type="button">
        {texts.open}
      </button>
    </section>
  );
}

/** Nothing requested by the user has failed: this is not an alert. */
function WhyNot({ failure: { code, message } }: { readonly failure: Failure }): ReactNode {
  const known = TEXTS.errors[code];
  return (
    <p className="note" role="status">
      <strong>{known?.title ?? TEXTS.unknownError}.</strong> {known?.hint} <span className="reason">{message}</span>
    </p>
  );
}

/** Shows what is deleted with a session, and ends it. */
export function EndDialog(props: {
  readonly session: SessionInfo;
  readonly end: SessionEndInfo;
  onClose(): void;
}): ReactNode {
  const { end, onClose } = props;
  const { session, client, server, watches } = props.session;
  const { cluster, notify } = useSession();
  const { end: texts } = TEXTS.sessions;
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      const ended = await ask<SessionEndInfo>(clusterUrl(cluster.name, 'session-end'), { session, server: end.server });
      notify(texts.done(session, ended.ephemerals));
      onClose();
    } catch (error) {
      setFailure(failureOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog
      failure={failure}
      isBusy={isBusy}
      isDangerous
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={texts.submit}
      title={texts.title(session)}
    >
      <p>{texts.text(client, server)}</p>
      <Paths count={end.ephemerals} paths={end.paths} title={texts.goes(end.ephemerals)} />
      <Paths count={watches.length} paths={watches} title={texts.watches(watches.length)} />
    </Dialog>
  );
}

function Paths(props: {
  readonly title: string;
  readonly count: number;
  readonly paths: readonly string[];
}): ReactNode {
  const shown = props.paths.slice(0, PATHS_MAX);
  const left = props.count - shown.length;
  return (
    <section>
      <h3>{props.title}</h3>
      {shown.length > 0 && (
        <ul className="paths mono">
          {shown.map((path) => (
            <li key={path}>{path}</li>
          ))}
          {left > 0 && <li>{TEXTS.sessions.end.more(left)}</li>}
        </ul>
      )}
    </section>
  );
}
