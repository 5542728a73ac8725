import { afterAll, beforeAll } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { testOneShotWatches } from './operations/one-shot-watches.ts';
import { testPermissions } from './operations/permissions.ts';
import { testRequests } from './operations/requests.ts';
import { testSessions } from './operations/sessions.ts';
import { Site } from './operations/site.ts';
import { testZnodes } from './operations/znodes.ts';

// The same expectations for both servers, so that any difference fails.
for (const kind of SERVER_KINDS) {
  describeWith(kind === 'apache' ? ['apache'] : [], `the client against ${kind}`, () => {
    let server: ServerProcess;
    beforeAll(async () => {
      // Session timeouts from 1 to 10 seconds.
      server = await ServerProcess.start(kind, { config: { tickTime: 500 } });
    });
    afterAll(() => server.dispose());
    const site = new Site(kind, () => server);
    testZnodes(site);
    testPermissions(site);
    testRequests(site);
    testOneShotWatches(site);
    testSessions(site);
  });
}
