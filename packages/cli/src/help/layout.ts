import { styleText } from 'node:util';
import type { Argument, Command, Help, HelpConfiguration, Option } from 'commander';
import { COMMAND_GROUPS } from '../run/command.ts';

/**
 * How help looks. The program: what it is, its commands in groups. A command: what it does, its usage, its own arguments
 * and options; those that all commands share are a topic of their own (`topics.ts`).
 *
 * Styles are taken off again by commander where there is no terminal.
 */
export const HELP_LAYOUT: HelpConfiguration = {
  formatHelp(command: Command, helper: Help): string {
    const sections = command.parent === null ? programSections(command, helper) : commandSections(command, helper);
    return `${sections.filter((section) => section !== '').join('\n\n')}\n`;
  },
  subcommandTerm: (command: Command) => command.name(),
  styleTitle: (title: string) => styleText('bold', title),
  optionDescription: (option: Option) =>
    withExtra(option.description, option.argChoices, option.isBoolean() ? undefined : option.defaultValue),
  argumentDescription: (argument: Argument) =>
    withExtra(argument.description, argument.argChoices, argument.defaultValue),
};

function programSections(program: Command, helper: Help): readonly string[] {
  const visible = helper.visibleCommands(program);
  const width = Math.max(...visible.map((command) => command.name().length));
  return [
    ...opening(program, helper),
    ...COMMAND_GROUPS.map((group) => {
      const commands = visible.filter((command) => command.helpGroup() === group);
      return section(
        group,
        commands.map((command) => [command.name(), helper.subcommandDescription(command)]),
        width,
        helper,
      );
    }),
  ];
}

function commandSections(command: Command, helper: Help): readonly string[] {
  const listedArguments = helper
    .visibleArguments(command)
    .map((argument): Item => [helper.argumentTerm(argument), helper.argumentDescription(argument)]);
  const groups = optionGroups(command, helper);
  const width = Math.max(
    0,
    ...[...listedArguments, ...groups.flatMap(([, items]) => items)].map(([term]) => term.length),
  );
  return [
    ...opening(command, helper),
    section('Arguments:', listedArguments, width, helper),
    ...groups.map(([title, items]) => section(title, items, width, helper)),
  ];
}

/** The options of a command in their groups. @param command of the program itself, those that all commands share */
export function optionGroups(command: Command, helper: Help): readonly (readonly [title: string, Item[]])[] {
  const groups = new Map<string, Item[]>();
  for (const option of helper.visibleOptions(command)) {
    // Obvious to a reader of the help.
    if (option.long === '--help') continue;
    const title = option.helpGroupHeading ?? 'Options:';
    const items = groups.get(title) ?? [];
    groups.set(title, items);
    items.push([helper.optionTerm(option), helper.optionDescription(option)]);
  }
  return [...groups];
}

/** A term, and what it means. */
export type Item = readonly [term: string, description: string];

/** A title and a line or more for each item; empty without items. */
export function section(title: string, items: readonly Item[], width: number, helper: Help): string {
  if (items.length === 0) return '';
  const lines = items.map(([term, description]) => helper.formatItem(term, width, description, helper));
  return [helper.styleTitle(title), ...lines].join('\n');
}

function opening(command: Command, helper: Help): readonly string[] {
  return [
    helper.boxWrap(helper.commandDescription(command), helper.helpWidth ?? 80),
    `${helper.styleTitle('Usage:')} ${helper.commandUsage(command)}`,
  ];
}

/** Choices and default as people write them. */
function withExtra(description: string, choices: readonly string[] | undefined, defaultValue: unknown): string {
  const extra = [
    ...(choices === undefined ? [] : [`one of ${choices.join(', ')}`]),
    ...(isShown(defaultValue) ? [`default ${[defaultValue].flat().join(' ')}`] : []),
  ];
  return extra.length === 0 ? description : `${description} (${extra.join('; ')})`;
}

function isShown(defaultValue: unknown): boolean {
  return (
    defaultValue !== undefined && defaultValue !== false && !(Array.isArray(defaultValue) && defaultValue.length === 0)
  );
}
