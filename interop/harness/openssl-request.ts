import { spawn } from 'node:child_process';

/** Sends a request with `openssl s_client`, which trusts one authority. @returns the output */
export async function throughOpenssl(
  { port, ca }: { readonly port: number; readonly ca: string },
  request: readonly string[],
  ...more: readonly string[]
): Promise<string> {
  const words = ['s_client', '-quiet', '-verify_return_error', '-CAfile', ca, '-connect', `127.0.0.1:${port}`, ...more];
  const child = spawn('openssl', words, { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.on('error', () => {});
  child.stdin.write([...request, 'Host: 127.0.0.1', 'Connection: close', '', ''].join('\r\n'));
  let text = '';
  for await (const chunk of child.stdout) text += String(chunk);
  return text;
}
