/**
 * Takes a command line apart as a shell does: blanks between words, quotes and backslashes. What is not closed yet, because
 * is still being typed, ends with the line.
 *
 * @returns the words; the last one is the one being typed, '' behind a blank
 */
export function splitLine(line: string): readonly string[] {
  const words: string[] = [];
  let word = '';
  let quote: '"' | "'" | null = null;
  for (let i = 0; i < line.length; i++) {
    const character = line[i] ?? '';
    if (quote === "'") {
      if (character === "'") quote = null;
      else word += character;
    } else if (character === '\\') {
      const next = line[++i] ?? '';
      // Between double quotes a backslash stands for itself, unless it is in front of something special.
      word += quote === '"' && !/["\\$`]/.test(next) ? `\\${next}` : next;
    } else if (quote === '"') {
      if (character === '"') quote = null;
      else word += character;
    } else if (character === '"' || character === "'") quote = character;
    else if (/\s/.test(character)) {
      if (i === 0 || !/\s/.test(line[i - 1] ?? '')) words.push(word);
      word = '';
    } else word += character;
  }
  return [...words, word];
}
