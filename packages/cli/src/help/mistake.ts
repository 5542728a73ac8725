import type { Command } from 'commander';

/** Reports usage errors of this command in our format. Not inherited: a parent would show its own usage. */
export function explainMistakes(command: Command): Command {
  return command.configureOutput({ outputError: (message, write) => write(describeMistake(command, message)) });
}

/** The message of a usage error: what is wrong, the usage, and where to find more. */
function describeMistake(command: Command, message: string): string {
  const name = nameOf(command);
  const words = message
    .trim()
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/, '; did you mean $1?');
  if (command.parent !== null) {
    return `${name}: ${words}\nusage: ${command.createHelp().commandUsage(command)}\n"${name} --help" says more\n`;
  }
  const habit = HABITS[/unknown command '([^']*)'/.exec(words)?.[1]?.toLowerCase() ?? ''];
  if (habit !== undefined) {
    const unknown = words.replace(/; did you mean .*$/, '');
    return `${name}: ${unknown}: "${name} ${habit}" does that\n"${name} --help" lists the commands\n`;
  }
  const more = words.includes('option') ? `${name} help options" lists them` : `${name} --help" lists the commands`;
  return `${name}: ${words}\n"${more}\n`;
}

/** `meerkat ls` */
function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`.trim();
}

/** What the same thing is called elsewhere: in zkCli, or in a Unix shell. */
const HABITS: Readonly<Record<string, string>> = {
  delete: 'rm',
  deleteall: 'rm -r',
  rmr: 'rm -r',
  cat: 'get',
  mkdir: 'create',
  touch: 'create',
  getacl: 'acl',
  setacl: 'acl set',
  listquota: 'quota',
  setquota: 'quota set',
  delquota: 'quota remove',
  addwatch: 'watch -r',
  getephemerals: 'find / --ephemeral',
  getallchildrennumber: 'du',
  dump: 'export',
  backup: 'export',
  restore: 'import',
  multi: 'txn',
  exec: 'lock',
};
