import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

/** With RECORD=1 the pictures of docs/console.md are recorded again. */
export const isRecording: boolean = process.env['RECORD'] === '1';

export function picturePath(name: string): string {
  return fileURLToPath(new URL(`../../docs/console/${name}.png`, import.meta.url));
}

/** Does nothing unless recording. */
export async function recordPicture(page: Page, name: string): Promise<void> {
  if (isRecording) await page.screenshot({ path: picturePath(name) });
}
