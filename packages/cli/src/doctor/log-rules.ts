import type { FaultName, Finding } from './faults.ts';
import type { LogLine } from './log-lines.ts';

/** The fault that a line of a server's log shows. The first group of the pattern, if any, is reported with the line. */
interface LogRule {
  readonly pattern: RegExp;
  readonly fault: FaultName;
  /** True: it is resolved once the server serves again. */
  readonly isOverWhenServing?: true;
}

/** Lines of our servers, and of Apache's (its texts as of 3.8). The first one that matches counts. */
const RULES: readonly LogRule[] = [
  // Between servers.
  {
    pattern: /on the election port: it claims to be server \d+, which is this one/,
    fault: 'myid-twice',
    isOverWhenServing: true,
  },
  { pattern: /follows a membership that differs/, fault: 'members-differ', isOverWhenServing: true },
  {
    pattern:
      /but this server has accepted epoch|this server stays out and keeps its files|has accepted epoch \d+, and this leader/,
    fault: 'epoch-ahead',
    isOverWhenServing: true,
  },
  { pattern: /Leaders epoch, .* is less than accepted epoch/, fault: 'epoch-ahead', isOverWhenServing: true },
  { pattern: /cannot listen for (the election|followers) at/, fault: 'quorum-port-taken', isOverWhenServing: true },
  {
    pattern: /(Couldn't bind|Exception while listening|Cannot bind|bind.*(election|quorum))/i,
    fault: 'quorum-port-taken',
    isOverWhenServing: true,
  },
  {
    pattern:
      /SSL routines|it speaks TLS|does not speak TLS|TLS handshake.*(server|between)|SSLException|SSLHandshakeException|not an SSL\/TLS record|Unsupported or unrecognized SSL message/i,
    fault: 'quorum-tls-differs',
    isOverWhenServing: true,
  },
  {
    pattern: /SASL login of this server|SaslException|Failed to authenticate|quorum\.auth/i,
    fault: 'quorum-login-refused',
    isOverWhenServing: true,
  },
  { pattern: /Cannot open channel to \d+ at election address/, fault: 'election-port-closed', isOverWhenServing: true },
  {
    pattern: /without a connection: .*\((nothing listens|nothing answers|the name|there is no way)/,
    fault: 'election-port-closed',
    isOverWhenServing: true,
  },
  // Starting.
  { pattern: /myid file is missing|myid.*(is not a number|the id of this server, one of)/i, fault: 'myid-missing' },
  { pattern: /My id \d+ not in the peer list|myid.*expected an id that/i, fault: 'myid-not-listed' },
  {
    pattern: /No snapshot found, but there are log entries|there is no snapshot|start once with snapshot\.trust\.empty/,
    fault: 'snapshot-missing',
  },
  { pattern: /No space left on device|ENOSPC|the disk is full/, fault: 'disk-full' },
  { pattern: /cannot listen on .*in use|Address already in use/, fault: 'client-port-taken' },
  {
    pattern: /Unable to access datadir|Cannot (create|write to) (data|snap|log)|ENOTDIR|EACCES|EROFS|EBUSY/i,
    fault: 'data-directory-unusable',
  },
  {
    pattern: /CRC check failed|Unable to load database on disk|is damaged|checksum|the log has a gap/i,
    fault: 'log-damaged',
  },
  // Clients and speed.
  { pattern: /as many as (maxClientCnxns|maxCnxns) allows|Too many connections/, fault: 'too-many-connections' },
  { pattern: /Len error|announced a frame of \d+ bytes/, fault: 'request-too-long' },
  { pattern: /fsync-ing the write ahead log in .* took \d+ms|writing and syncing .* took \d+ ms/, fault: 'disk-slow' },
  { pattern: /Detected pause in JVM or host machine|the process stood still for/, fault: 'server-stalled' },
  {
    pattern: /as many connections of clients as the descriptors|Too many open files|EMFILE/,
    fault: 'descriptors-short',
  },
];

/** After such a line the server serves clients, and faults that prevented it are resolved. */
const SERVES =
  /clients are served|Peer state changed: (leading|following|observing) - broadcast|(?<!leader, it )serves clients on/;

/** Collects what the log of one server shows: a finding for each fault, with the last line of it and how often. */
export class LogFindings {
  readonly #file: string;
  readonly #seen = new Map<FaultName, { line: LogLine; count: number; rule: LogRule }>();

  constructor(file: string) {
    this.#file = file;
  }

  add(line: LogLine): void {
    if (SERVES.test(line.text)) {
      for (const [fault, { rule }] of this.#seen) if (rule.isOverWhenServing === true) this.#seen.delete(fault);
      return;
    }
    const rule = RULES.find(({ pattern }) => pattern.test(line.text));
    if (rule === undefined) return;
    const seen = this.#seen.get(rule.fault);
    if (seen === undefined) this.#seen.set(rule.fault, { line, count: 1, rule });
    else {
      seen.count++;
      seen.line = line;
    }
  }

  list(): Finding[] {
    return [...this.#seen].map(([fault, { line, count }]) => {
      const often = count === 1 ? '' : ` (${count} such lines, this is the last one)`;
      return { fault, where: this.#file, found: `${line.time} ${line.text.slice(0, 300)}${often}`.trim() };
    });
  }
}
