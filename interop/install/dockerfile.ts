/** One instruction of a Dockerfile. */
export interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** Parses a Dockerfile: drops comments and joins lines that end in a backslash. */
export function parseDockerfile(text: string): readonly Instruction[] {
  const lines = text.split('\n').filter((line) => !line.startsWith('#'));
  return lines
    .join('\n')
    .replaceAll(/ *\\\n */g, ' ')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [name = '', ...rest] = line.split(' ');
      return { name, text: rest.join(' ').trim() };
    });
}

/**
 * Converts the instructions to a bash script that executes them in the directory $root with the files in $context.
 *
 * Supports the instructions of our Dockerfile. Metadata, such as EXPOSE, does not change files.
 */
export function dockerfileToBash(instructions: readonly Instruction[]): string {
  const environment = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'];
  const args: string[] = [];
  const steps = instructions.map(({ name, text }) => {
    switch (name) {
      case 'ARG':
        args.push(text);
        return '';
      case 'ENV':
        environment.push(...text.split(' '));
        return '';
      case 'RUN':
        return `env -i ${quote([...environment, ...args])} chroot "$root" /bin/sh -c ${quote([text])}`;
      case 'COPY': {
        const words = text.split(' ');
        const target = words.at(-1) ?? '';
        return `mkdir -p "$root"${target}; (cd "$context" && cp ${words.slice(0, -1).join(' ')} "$root"${target})`;
      }
      case 'CMD':
      case 'ENTRYPOINT':
      case 'EXPOSE':
      case 'FROM':
      case 'HEALTHCHECK':
      case 'STOPSIGNAL':
      case 'VOLUME':
        return '';
      default:
        throw new Error(`the Dockerfile has ${name}, which this test does not know`);
    }
  });
  return [...steps, `echo ${quote([`image_environment=(${quote(environment)})`])} > "$root/image-environment"`].join(
    '\n',
  );
}

function quote(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
}
