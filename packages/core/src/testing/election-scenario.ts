import { type ElectionNotification, ServerState, VOTE_NONE, type Zxid } from '@meerkat/protocol';
import { isSameVote, NO_VOTE, type Vote } from '../election/vote.ts';
import { CONFIG_TEXT, ElectionEnsemble } from './election-ensemble.ts';

/**
 * Plays a scenario of an election: blocks of commands, each followed by `----` and the resulting output.
 *
 *     voters 1 2 3                      the ensemble; this and the next four come first
 *     observers 9                       servers that only look for the leader
 *     groups 1:2:3 4:5:6 7:8:9          a quorum is a majority of groups, each by a majority of its weight
 *     weights 3=0                       … where this server has no weight
 *     apache 2                          behaves like an Apache server
 *     scripted 3                        has no machine: `say` sends its messages
 *
 *     quietly                           only decisions are shown for the rest of this block
 *     look 3 zxid=0x200000004           starts server 3, or ends its role: it looks for a leader. The epoch is that of
 *                                       the zxid unless epoch= sets another one
 *     deliver-all                       delivers messages in flight, and all answers, at the current time
 *     advance 200                       time passes, in milliseconds
 *     established 3 at 1 2 3            these servers have synchronized in epoch 3
 *     crash 3 / cut 1 2 / heal 1 2      a process ends / a connection breaks / comes back
 *     partition 1 2 | 3 / heal          everything between the parts breaks / comes back
 *     swallow 1 2                       all messages are lost from now on, and neither server is notified
 *     say 3 → 1 FOLLOWING leader=2 epoch=1 zxid=0x100000005 round=1 version=0
 *
 * Output:
 *
 *     3 → 1 2   vote leader=3 epoch=2 zxid=0x200000004 round=1        sent, to each of them
 *     1         changes its vote to 3
 *     1         FOLLOWING 3
 *     3         decided in vain                                       the decision no longer holds (decisionLost)
 */
export function playElection(text: string): string {
  const player = new Player();
  const blocks = text
    .trim()
    .split(/\n\n+/)
    .map((block) => block.split(/\n?^----$/m)[0]!);
  const played = blocks.map((commands) => [commands, '----', ...player.playAll(commands.split('\n'))].join('\n'));
  return `${played.join('\n\n')}\n`;
}

class Player {
  #ensemble: ElectionEnsemble | null = null;
  #voters: readonly number[] = [];
  #observers: readonly number[] = [];
  #apache: readonly number[] = [];
  #scripted: readonly number[] = [];
  #groups: readonly (readonly number[])[] = [];
  #weights = new Map<number, number>();
  #said: string[] = [];
  #isQuiet = false;
  /** The last messages, while they are the same one to several servers. */
  #group: { from: number; text: string; to: number[] } | null = null;
  /** Round and vote of each server, to notice when they change. */
  readonly #shown = new Map<number, { round: number; vote: Vote }>();

  playAll(lines: readonly string[]): readonly string[] {
    this.#said = [];
    this.#isQuiet = false;
    for (const line of lines) if (!line.startsWith('#')) this.#play(line.trim().split(/\s+/) as [string, ...string[]]);
    this.#closeGroup();
    return this.#said;
  }

  #play([word, ...rest]: [string, ...string[]]): void {
    switch (word) {
      case 'voters':
        this.#voters = rest.map(Number);
        return;
      case 'observers':
        this.#observers = rest.map(Number);
        return;
      case 'apache':
        this.#apache = rest.map(Number);
        return;
      case 'scripted':
        this.#scripted = rest.map(Number);
        return;
      case 'groups':
        this.#groups = rest.map((group) => group.split(':').map(Number));
        return;
      case 'quietly':
        this.#isQuiet = true;
        return;
      case 'weights':
        this.#weights = new Map(rest.map((pair) => pair.split('=').map(Number) as [number, number]));
        return;
      default:
        this.#act(this.#ensemble ?? this.#makeEnsemble(), word, rest);
        this.#notice();
    }
  }

  #act(ensemble: ElectionEnsemble, word: string, rest: readonly string[]): void {
    const ids = rest.filter((part) => /^\d+$/.test(part)).map(Number);
    const [one, other] = ids as [number, number];
    switch (word) {
      case 'look': {
        const lastZxid = Number(optionOf(rest, 'zxid') ?? 0) as Zxid;
        const currentEpoch = Number(optionOf(rest, 'epoch') ?? Math.max(0, Math.floor(lastZxid / 2 ** 32)));
        this.#shown.delete(one);
        ensemble.look(one, { lastZxid, currentEpoch });
        return;
      }
      case 'deliver-all':
        ensemble.deliverAll();
        return;
      case 'advance':
        ensemble.advance(one);
        return;
      case 'established': {
        const [epoch, ...at] = ids as [number, ...number[]];
        for (const id of at) ensemble.establish(id, epoch);
        return;
      }
      case 'crash':
        ensemble.crash(one);
        this.#shown.delete(one);
        return;
      case 'cut':
        ensemble.cut(one, other);
        return;
      case 'swallow':
        ensemble.swallow(one, other);
        return;
      case 'heal':
        if (ids.length === 0) ensemble.healAll();
        else ensemble.heal(one, other);
        return;
      case 'partition': {
        const [left, right] = rest
          .join(' ')
          .split('|')
          .map((part) => part.trim().split(' ').map(Number));
        for (const a of left!) for (const b of right!) ensemble.cut(a, b);
        return;
      }
      case 'say': {
        const notification = parseNotification(rest.slice(3));
        this.#saySent(one, other, notification);
        ensemble.deliver(one, other, notification);
        return;
      }
      default:
        throw new Error(`an election scenario has no command "${word}"`);
    }
  }

  #makeEnsemble(): ElectionEnsemble {
    const shape = {
      voters: this.#voters,
      observers: this.#observers,
      apache: this.#apache,
      scripted: this.#scripted,
      groups: this.#groups,
      weights: this.#weights,
    };
    const ensemble = new ElectionEnsemble(shape, {
      onSent: (from, to, notification) => this.#saySent(from, to, notification),
      onDecided: (id, { state, leader }) => {
        this.#notice();
        this.#closeGroup();
        this.#said.push(
          `${String(id).padEnd(WIDTH)}${state === ServerState.leading ? 'LEADING' : `${nameOf(state)} ${leader}`}`,
        );
      },
      onDecisionLost: (id) => this.#say(id, 'decided in vain'),
      onConfigReceived: (id, text) => this.#say(id, `hears of another configuration: ${text}`),
    });
    this.#ensemble = ensemble;
    return ensemble;
  }

  #saySent(from: number, to: number, notification: ElectionNotification): void {
    const text = formatNotification(notification);
    if (this.#group?.from === from && this.#group.text === text && !this.#group.to.includes(to)) {
      this.#group.to.push(to);
      return;
    }
    this.#notice();
    this.#closeGroup();
    this.#group = { from, text, to: [to] };
  }

  #say(id: number, text: string): void {
    this.#closeGroup();
    if (!this.#isQuiet) this.#said.push(`${String(id).padEnd(WIDTH)}${text}`);
  }

  #closeGroup(): void {
    if (this.#group === null) return;
    const { from, text, to } = this.#group;
    this.#group = null;
    if (!this.#isQuiet) this.#said.push(`${`${from} → ${to.join(' ')}`.padEnd(WIDTH)}${text}`);
  }

  /** Reports which servers have changed their round or vote. */
  #notice(): void {
    for (const id of this.#ensemble?.ids ?? []) {
      if (!this.#ensemble!.isRunning(id)) continue;
      const { round, vote, state } = this.#ensemble!.machine(id);
      const before = this.#shown.get(id);
      if (before?.round === round && isSameVote(before.vote, vote)) continue;
      this.#shown.set(id, { round, vote });
      if (before === undefined || state !== ServerState.looking) continue;
      if (before.round !== round) this.#say(id, `joins round ${round}`);
      if (vote.leader !== before.vote.leader) this.#say(id, `changes its vote to ${vote.leader}`);
    }
  }
}

const WIDTH = 14;

function nameOf(state: ServerState): string {
  return Object.entries(ServerState)
    .find(([, value]) => value === state)![0]
    .toUpperCase();
}

function formatNotification({ state, version, configText, ...vote }: ElectionNotification): string {
  const what = state === ServerState.looking ? 'vote' : nameOf(state);
  const config = configText === null || configText === CONFIG_TEXT ? '' : ` config=${configText}`;
  const old = version < 2 ? ` version=${version}` : '';
  return `${what} ${formatVote(vote)} round=${vote.electionEpoch}${old}${config}`;
}

function formatVote({ leader, peerEpoch, zxid }: Vote): string {
  if (leader === VOTE_NONE) return 'for nobody';
  return `leader=${leader} epoch=${peerEpoch} zxid=${zxid < 0 ? zxid : `0x${zxid.toString(16)}`}`;
}

function parseNotification([what, ...rest]: readonly string[]): ElectionNotification {
  const version = Number(optionOf(rest, 'version') ?? 2);
  const state = what === 'vote' ? ServerState.looking : ServerState[what!.toLowerCase() as keyof typeof ServerState];
  return {
    state,
    leader: Number(optionOf(rest, 'leader') ?? NO_VOTE.leader),
    zxid: Number(optionOf(rest, 'zxid') ?? NO_VOTE.zxid) as Zxid,
    peerEpoch: Number(optionOf(rest, 'epoch') ?? NO_VOTE.peerEpoch),
    electionEpoch: Number(optionOf(rest, 'round')),
    version,
    configText: optionOf(rest, 'config') ?? (version < 2 ? null : CONFIG_TEXT),
    announces: 0,
  };
}

function optionOf(words: readonly string[], name: string): string | undefined {
  return words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
}
