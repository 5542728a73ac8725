import { expect, test } from 'vitest';
import { ERROR_TEXT, ErrorCode } from './error-code.ts';

test('codes, names and texts are those of KeeperException', () => {
  // Printed by Apache ZooKeeper 3.8's KeeperException.Code and getCodeMessage; names in camel case.
  const expected = `
    0 ok: ok
    -1 systemError: SystemError
    -2 runtimeInconsistency: RuntimeInconsistency
    -3 dataInconsistency: DataInconsistency
    -4 connectionLoss: ConnectionLoss
    -5 marshallingError: MarshallingError
    -6 unimplemented: Unimplemented
    -7 operationTimeout: OperationTimeout
    -8 badArguments: BadArguments
    -12 unknownSession: Unknown error UNKNOWNSESSION
    -13 newConfigNoQuorum: NewConfigNoQuorum
    -14 reconfigInProgress: ReconfigInProgress
    -100 apiError: APIError
    -101 noNode: NoNode
    -102 noAuth: NoAuth
    -103 badVersion: BadVersion
    -108 noChildrenForEphemerals: NoChildrenForEphemerals
    -110 nodeExists: NodeExists
    -111 notEmpty: Directory not empty
    -112 sessionExpired: Session expired
    -113 invalidCallback: Invalid callback
    -114 invalidACL: InvalidACL
    -115 authFailed: AuthFailed
    -118 sessionMoved: Session moved
    -119 notReadOnly: Not a read-only call
    -120 ephemeralOnLocalSession: Ephemeral node on local session
    -121 noWatcher: No such watcher
    -122 requestTimeout: Unknown error REQUESTTIMEOUT
    -123 reconfigDisabled: Reconfig is disabled
    -124 sessionClosedRequireSaslAuth: Session closed because client failed to authenticate
    -125 quotaExceeded: Quota has exceeded
    -127 throttledOp: Op throttled due to high load`;
  const actual = Object.entries(ErrorCode).map(([name, code]) => `${code} ${name}: ${ERROR_TEXT[code]}`);
  expect(actual).toEqual(expected.trim().split(/\n\s*/));
});
