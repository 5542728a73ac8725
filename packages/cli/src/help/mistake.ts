import type { Command } from 'commander';

/** Mistakes on the command line of this command are reported in our words. Not inherited: a parent would tell its own usage. */
export function tellMistakes(command: Command): Command {
  return command.configureOutput({ outputError: (message, write) => write(describeMistake(command, message)) });
}

/** A mistake on the command line, as it is told: what is wrong, how the command is used, where more stands. */
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
