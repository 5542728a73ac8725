export { DerError, DerTag, type DerValue, formatObjectIdentifier, readDer, readDerValues } from './der.ts';
export { objectIdentifier, sequence, unsigned, utf8String, writeDer } from './der-writer.ts';
