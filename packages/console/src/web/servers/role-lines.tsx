import type { ReactNode } from 'react';
import type { ServersSample } from '../../api/messages.ts';
import { time } from '../figures.ts';
import { TEXTS } from '../texts.ts';

interface Span {
  readonly role: string;
  readonly fromMs: number;
  toMs: number;
}

/** The role of each server over time: elections and restarts show as changes of colour. */
export function RoleLines({
  samples,
  names,
}: {
  readonly samples: readonly ServersSample[];
  readonly names: readonly string[];
}): ReactNode {
  const first = samples[0]?.atMs ?? 0;
  const last = samples.at(-1)?.atMs ?? 1;
  const share = (ms: number): string => `${((ms - first) / Math.max(1, last - first)) * 100}%`;
  return (
    <section>
      <h2>{TEXTS.servers.roleLine}</h2>
      <div className="role-lines">
        {names.map((name) => (
          <div className="role-line" key={name}>
            <span className="mono">{name}</span>
            <div className="role-track">
              {spansOf(name, samples).map(({ role, fromMs, toMs }) => (
                <span
                  className={`role-span ${role}`}
                  key={fromMs}
                  style={{ left: share(fromMs), width: `max(2px, calc(${share(toMs)} - ${share(fromMs)}))` }}
                  title={`${role}: ${time(fromMs)} – ${time(toMs)}`}
                >
                  <span className="role-span-text">{role}</span>
                </span>
              ))}
            </div>
          </div>
        ))}
      </div>
    </section>
  );
}

export function spansOf(name: string, samples: readonly ServersSample[]): readonly Span[] {
  const spans: Span[] = [];
  for (const { atMs, servers } of samples) {
    const role = servers.find((server) => server.name === name)?.role ?? 'away';
    const current = spans.at(-1);
    if (current !== undefined) current.toMs = atMs;
    if (current?.role !== role) spans.push({ role, fromMs: atMs, toMs: atMs });
  }
  return spans;
}
