// #region code
import { JuteReader, JuteWriter, OpCode, readRequest, writeRequest } from '@meerkat/protocol';

const writer = new JuteWriter();
writeRequest(writer, { op: OpCode.getData, path: '/greeting', watch: true });
const bytes = writer.toBytes();
console.log(Buffer.from(bytes).toString('hex'));

console.log(readRequest(OpCode.getData, new JuteReader(bytes)));
// null for what is no such record: nothing throws.
console.log(readRequest(OpCode.getData, new JuteReader(bytes.subarray(0, 7))));
// #endregion

// Prints:
//   000000092f6772656574696e6701
//   { op: 4, path: '/greeting', watch: true }
//   null
