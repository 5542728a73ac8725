import { ConnectError, connect } from '@meerkat/client';

// Nothing listens on these ports. A wrong address never hangs: the first connect has a deadline.
try {
  await connect('127.0.0.1:1,127.0.0.1:2', { connectTimeoutMs: 300 });
} catch (error) {
  if (!(error instanceof ConnectError)) throw error;
  console.log(error.message);
}

// Prints:
//   connect: no server answered within … attempts:
//     127.0.0.1:…: connection refused… (connect ECONNREFUSED 127.0.0.1:…)
//     127.0.0.1:…: connection refused… (connect ECONNREFUSED 127.0.0.1:…)
//   Connection refused: check that the server runs there and that the port is its client port. (CONNECTFAILED)
