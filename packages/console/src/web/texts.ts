/* Every text of the page, in one place: by view. */
import { CHANGING_TEXTS } from './texts/changing.ts';
import { ERRORS_TEXTS } from './texts/errors.ts';
import { FRAME_TEXTS } from './texts/frame.ts';
import { HISTORY_TEXTS } from './texts/history.ts';
import { LIVE_TEXTS } from './texts/live.ts';
import { LOGIN_TEXTS } from './texts/login.ts';
import { MEMBERS_TEXTS } from './texts/members.ts';
import { PEOPLE_TEXTS } from './texts/people.ts';
import { SERVERS_TEXTS } from './texts/servers.ts';
import { SIZES_TEXTS } from './texts/sizes.ts';
import { TIME_TEXTS } from './texts/time.ts';
import { TREE_TEXTS } from './texts/tree.ts';

export const TEXTS = {
  ...FRAME_TEXTS,
  ...LOGIN_TEXTS,
  ...TREE_TEXTS,
  ...HISTORY_TEXTS,
  ...CHANGING_TEXTS,
  ...LIVE_TEXTS,
  ...PEOPLE_TEXTS,
  ...SERVERS_TEXTS,
  ...MEMBERS_TEXTS,
  ...SIZES_TEXTS,
  ...TIME_TEXTS,
  ...ERRORS_TEXTS,
} as const;
