/** What our line has beside its text. */
type LogFields = Readonly<Record<string, string | number | boolean>>;

/** A line of Apache's server, and whether it is to be shown although ours is only for debugging. */
export interface ApacheLine {
  readonly text: string;
  readonly isForAll?: true;
}

/**
 * What Apache's server logs where ours has logged a line: its texts as of 3.8, which people search logs for.
 *
 * Some need what was logged before: the role, and when an election began.
 */
export class ApacheLines {
  readonly #serverId: number | null;
  #role = '';
  /** Whether its learners, or it itself, have begun to synchronize in this role. */
  #isSynchronizing = false;
  #lookingSinceMs: number | null = null;
  /** Ids of servers that this leader has brought up to date. */
  readonly #synchronized = new Set<string>();

  /** @param serverId of this server; null: it is alone */
  constructor(serverId: number | null) {
    this.#serverId = serverId;
  }

  /**
   * @param message of our line, with its fields
   * @param nowMs milliseconds since 1970
   */
  of(message: string, fields: LogFields, nowMs: number): readonly ApacheLine[] {
    const field = (name: string): string => String(fields[name] ?? '');
    switch (fields['event']) {
      case 'session-expired':
        return [{ text: `Expiring session ${field('session')}, timeout of ${field('timeoutMs')}ms exceeded` }];
      case 'session-created':
      case 'session-resumed':
        return find(/ session (0x[0-9a-f]+), timeout (\d+) ms$/, message, ([, session, timeout]) => {
          return `Established session ${session} with negotiated timeout ${timeout} for client /${field('peer')}`;
        });
      case 'session-refused':
        return ofRefusedSession(message, field('peer'));
      case 'connection-refused':
        return find(/has (\d+) connections, as many as maxClientCnxns/, message, ([, max]) => {
          return `Too many connections from /${hostOf(field('peer'))} - max is ${max}`;
        });
      case 'connection-closed':
        return [
          ...find(/announced a frame of (\d+) bytes/, message, ([, bytes]) => `Len error ${bytes}`),
          ...find(/it asked "(\w+)"/, message, ([, word]) => `Processing ${word} command from /${field('peer')}`),
        ];
      case 'snapshot-started':
        return find(/([^/]*\.([0-9a-f]+))$/, field('file'), ([, , zxid]) => {
          return `Snapshotting: 0x${zxid} to ${field('file')}`;
        }).map(forAll);
      case 'snapshot-written':
        return [{ text: `Snapshot taken in ${Math.round(Number(fields['ms']))} ms` }];
      case 'log-file-started':
        return [forAll({ text: `Creating new log file: ${field('file').replace(/^.*\//, '')}` })];
      case 'purge-started':
        return [forAll({ text: 'Purge task started.' })];
      case 'purge-ended':
        return [forAll({ text: 'Purge task completed.' })];
      case 'files-purged':
        return [{ text: `Removing file: ${field('file')}` }];
      case 'quota-exceeded':
        return [{ text: `Quota exceeded: ${field('path')}` }];
      case 'admin-listening': {
        const place = `address ${field('host')}, port ${field('port')} and command URL /commands`;
        return [{ text: `Started AdminServer on ${place}` }];
      }
      case 'role-changed':
        return this.#onRole(field('role'), message.replace(/^looks for a leader: /, ''), nowMs);
      case 'election-started':
        return [forAll({ text: `New election. My id = ${this.#serverId}, proposed zxid=${hexOf(fields['zxid'])}` })];
      case 'peer-lost':
        return [{ text: `Connection broken for id ${field('serverId')}, my id = ${this.#serverId}` }];
      case 'catching-up':
        return this.#onCatchingUp(field('mode'), hexOf(fields['zxid']));
      case 'ready':
        if (fields['port'] !== undefined) return [{ text: `binding to port ${field('host')}:${field('port')}` }];
        return [...this.#ofSupporters(hexOf(fields['zxid'])), this.#stateOf('broadcast')];
      case 'learner-synchronized':
        this.#synchronized.add(field('serverId'));
        return [];
      case 'stopping':
        return [{ text: 'Severe unrecoverable error, from thread : SyncThread:0' }];
      case 'not-started':
        return [{ text: 'Unable to load database on disk' }];
      case 'exit':
        return [forAll({ text: `Exiting JVM with code ${field('exitCode')}` })];
      case 'audit-enabled':
        return [{ text: 'ZooKeeper audit is enabled.' }];
      case 'learner-synchronizing':
        return [
          ...this.#onSynchronizing(),
          { text: ofSync(field('mode'), hexOf(fields['from']), hexOf(fields['zxid']), field('serverId')) },
        ];
      case 'learner-closed':
        return [
          ...find(/has not acknowledged [0-9a-f]+ within syncLimit$/, message, () => {
            return 'Closing connection to peer due to transaction timeout.';
          }),
          { text: `******* GOODBYE ${/^server \d+/.exec(message)?.[0] ?? ''} ********` },
        ];
      default:
        return [
          ...find(/writing and syncing .* took (\d+) ms/, message, ([, ms]) => {
            return `fsync-ing the write ahead log in SyncThread:0 took ${ms}ms`;
          }),
          ...[...message.matchAll(/(\d+) \(nothing listens at ([^)]*)\)/g)].map(([, id, place]) => {
            return { text: `Cannot open channel to ${id} at election address ${place}` };
          }),
        ];
    }
  }

  /** The lines of a leader at the start of its epoch. */
  #ofSupporters(zxid: string): readonly ApacheLine[] {
    if (this.#role !== 'leading') return [];
    const ids = [this.#serverId, ...this.#synchronized].join(', ');
    return [
      { text: `Have quorum of supporters, sids: [[${ids}]]; starting up and setting last processed zxid: ${zxid}` },
    ];
  }

  #onRole(role: string, reason: string, nowMs: number): readonly ApacheLine[] {
    const state = { text: role.toUpperCase() };
    this.#isSynchronizing = false;
    const sinceMs = this.#lookingSinceMs;
    const left = this.#role;
    this.#role = role;
    this.#synchronized.clear();
    if (role === 'looking') {
      this.#lookingSinceMs ??= nowMs;
      const changed = left === '' || left === role ? [] : [{ text: 'Peer state changed: looking' }];
      return [...ofLeft(left, reason), ...changed, state];
    }
    this.#lookingSinceMs = null;
    const states = [{ text: `Peer state changed: ${role}` }, state];
    if (sinceMs === null || role === 'observing') return [...states, this.#stateOf('discovery')];
    const took = { text: `${state.text} - LEADER ELECTION TOOK - ${nowMs - sinceMs} MS` };
    return [...states, took, this.#stateOf('discovery')];
  }

  #onCatchingUp(mode: string, zxid: string): readonly ApacheLine[] {
    return [...this.#onSynchronizing(), { text: ofCatchingUp(mode, zxid) }, this.#stateOf(`synchronization - ${mode}`)];
  }

  /** Of a leader: its first learner. */
  #onSynchronizing(): readonly ApacheLine[] {
    if (this.#isSynchronizing) return [];
    this.#isSynchronizing = true;
    return [this.#stateOf('synchronization')];
  }

  #stateOf(phase: string): ApacheLine {
    return { text: `Peer state changed: ${this.#role} - ${phase}` };
  }
}

/** The end of a role. */
function ofLeft(role: string, reason: string): readonly ApacheLine[] {
  if (role === 'leading') return [{ text: `Shutdown called. For the reason ${reason}` }];
  if (role === 'following') return [{ text: `Exception when following the leader: ${reason}` }];
  if (role === 'observing') return [{ text: `Exception when observing the leader: ${reason}` }];
  return [];
}

function ofRefusedSession(message: string, peer: string): readonly ApacheLine[] {
  const pattern = /session (0x[0-9a-f]+): it has seen zxid (0x[0-9a-f]+) and this server is at (0x[0-9a-f]+)/;
  return find(pattern, message, ([, session, seen, ours]) => {
    return `Refusing session(${session}) request for client /${peer} as it has seen zxid ${seen} our last zxid is ${ours} client must try another server`;
  });
}

function ofCatchingUp(mode: string, zxid: string): string {
  if (mode === 'diff') return `Getting a diff from the leader ${zxid}`;
  if (mode === 'trunc') return `Truncating log to get in sync with the leader ${zxid}`;
  return `Getting a snapshot from leader ${zxid}`;
}

function ofSync(mode: string, from: string, zxid: string, serverId: string): string {
  if (mode === 'diff') return `Sending DIFF zxid=${zxid} for peer sid: ${serverId}`;
  if (mode === 'trunc') return `Sending TRUNC to follower zxidToSend=${zxid} for peer sid:${serverId}`;
  return `Sending snapshot last zxid of peer is ${from}, zxid of leader is ${zxid}`;
}

function hexOf(value: LogFields[string] | undefined): string {
  return `0x${Number(value).toString(16)}`;
}

function find(pattern: RegExp, text: string, make: (found: readonly string[]) => string): readonly ApacheLine[] {
  const found = pattern.exec(text);
  return found === null ? [] : [{ text: make(found) }];
}

function forAll({ text }: ApacheLine): ApacheLine {
  return { text, isForAll: true };
}

function hostOf(peer: string): string {
  return peer.replace(/:\d+$/, '');
}
