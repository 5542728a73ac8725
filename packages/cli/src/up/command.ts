/** What is typed while the ensemble runs. */
export type UpCommand =
  | { readonly kind: 'kill' | 'pause' | 'resume' | 'restart' | 'isolate'; readonly id: number }
  | { readonly kind: 'partition'; readonly groups: readonly (readonly number[])[] }
  | { readonly kind: 'heal' | 'status' | 'help' | 'quit' };

/** What is wrong with a command, for the user. */
export interface CommandFault {
  readonly fault: string;
}

export const COMMANDS_HELP = `commands: kill N, pause N, resume N, restart N, isolate N, partition 1 | 2 3, heal, status, quit
          N is the number of a server, or "leader"`;

/** The servers that commands may name. */
export interface Known {
  readonly ids: readonly number[];
  /** Null while there is none. */
  readonly leader: number | null;
}

/**
 * Reads one command.
 *
 * @returns null of an empty line
 */
export function parseUpCommand(line: string, known: Known): UpCommand | CommandFault | null {
  const [word = '', ...args] = line.trim().split(/\s+/);
  switch (word) {
    case '':
      return null;
    case 'heal':
    case 'status':
    case 'help':
    case 'quit':
      return args.length === 0 ? { kind: word } : { fault: `"${word}" stands alone: found ${args.join(' ')} after it` };
    case 'kill':
    case 'pause':
    case 'resume':
    case 'restart':
    case 'isolate': {
      if (args.length !== 1)
        return { fault: `expected one server, such as "${word} ${known.ids[0]}" or "${word} leader"` };
      const id = parseServer(args[0] ?? '', known);
      return typeof id === 'number' ? { kind: word, id } : id;
    }
    case 'partition':
      return parsePartition(args.join(' '), known);
    default:
      return { fault: `there is no command "${word}"; ${COMMANDS_HELP}` };
  }
}

function parseServer(word: string, { ids, leader }: Known): number | CommandFault {
  if (word === 'leader') return leader ?? { fault: 'no server leads at the moment' };
  const id = Number(word);
  return ids.includes(id) ? id : { fault: `there is no server "${word}": there are ${ids.join(', ')}` };
}

function parsePartition(text: string, known: Known): UpCommand | CommandFault {
  const words = text.split('|').map((group) => group.split(/[\s,]+/).filter(Boolean));
  if (words.some((group) => group.length === 0)) {
    return { fault: 'expected groups of servers, such as "partition 1 | 2 3"; those that no group names are one more' };
  }
  const groups: number[][] = [];
  const seen = new Set<number>();
  for (const group of words) {
    const ids: number[] = [];
    for (const word of group) {
      const id = parseServer(word, known);
      if (typeof id !== 'number') return id;
      if (seen.has(id)) return { fault: `server ${id} is named twice` };
      seen.add(id);
      ids.push(id);
    }
    groups.push(ids);
  }
  return { kind: 'partition', groups };
}
