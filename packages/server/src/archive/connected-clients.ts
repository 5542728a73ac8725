/** Where the clients of sessions are, from the answer of the admin command `connections`. By session id, unsigned. */
export function readConnectedClients(answer: string): Map<bigint, string> {
  const found = new Map<bigint, string>();
  // Ids are longer than the numbers of JSON.
  const text = answer.replaceAll(/("session_id"\s*:\s*)(-?\d+)/g, '$1"$2"');
  const { connections = [], secure_connections: secure = [] } = JSON.parse(text) as {
    readonly connections?: readonly Connection[];
    readonly secure_connections?: readonly Connection[];
  };
  for (const { session_id: id, remote_socket_address: address } of [...connections, ...secure]) {
    if (id !== undefined && address !== undefined) found.set(BigInt.asUintN(64, BigInt(id)), address);
  }
  return found;
}

interface Connection {
  readonly session_id?: string;
  readonly remote_socket_address?: string;
}
