import { formatZxid, type Membership, makeZxid, parseMembership } from '@meerkat/protocol';
import { expect, it } from 'vitest';
import { Members } from './members.ts';
import { assessMembership, type GossipResult } from './membership-gossip.ts';

const THREE = ['server.1=a:1:2:participant', 'server.2=b:1:2:participant', 'server.3=c:1:2:participant'];
const OWN_VERSION = makeZxid(2, 5);

function textOf(version: number, lines: readonly string[] = THREE): string {
  return [...lines, `version=${formatZxid(version).replace(/^0x/, '')}`].join('\n');
}

function parsed(text: string): Membership {
  const membership = parseMembership(text);
  if ('fault' in membership) throw new Error(membership.fault);
  return membership;
}

function assess(from: number, text: string, isReconfigEnabled = true): GossipResult {
  const members = new Members(parsed(textOf(OWN_VERSION)), isReconfigEnabled);
  const rules = { isStandaloneEnabled: false, isMultiAddressEnabled: false };
  return assessMembership(from, text, { members, isReconfigEnabled, rules, acceptedEpoch: 2 });
}

const NEWER = textOf(makeZxid(2, 6), THREE.slice(0, 2));

it('a newer membership is adopted from a member', () => {
  expect(assess(2, NEWER)).toEqual({ newer: parsed(NEWER) });
});

it.each([
  { what: 'an older membership', text: textOf(makeZxid(2, 4), THREE.slice(0, 2)) },
  { what: 'the same membership', text: textOf(OWN_VERSION) },
])('nothing is done about $what', ({ text }) => {
  expect(assess(2, text)).toBeNull();
});

it.each([
  { what: 'one reported by a stranger', from: 9, text: NEWER, why: 'it is no member' },
  { what: 'one of an epoch far beyond', from: 2, text: textOf(makeZxid(1_000_000, 1)), why: 'far beyond 2' },
  { what: 'one that cannot be used', from: 2, text: 'nonsense', why: 'cannot be used' },
  {
    what: 'one that breaks the rules',
    from: 2,
    text: textOf(makeZxid(2, 6), ['server.2=b:1:2|c:1:2:participant', 'server.3=d:1:2:participant']),
    why: 'multiAddress',
  },
  { what: 'another of the same version', from: 2, text: textOf(OWN_VERSION, THREE.slice(0, 2)), why: 'differs' },
])('$what is not adopted, with a warning', ({ from, text, why }) => {
  expect(assess(from, text)).toEqual({ warning: expect.stringContaining(why) });
});

it('with reconfigEnabled=false any other membership is reported as a difference', () => {
  expect(assess(2, NEWER, false)).toEqual({ warning: expect.stringContaining('differs') });
});
